/**
 * The public names for Deno, in addition to those of the main entry.
 *
 * @module ensemble-orchestrator/deno
 */

export type { DenoServeInfo } from '../adapters/hosts/deno/to-deno-handler.ts';
export { toDenoHandler } from '../adapters/hosts/deno/to-deno-handler.ts';
