/**
 * The public names for Bun, in addition to those of the main entry.
 *
 * @module ensemble-orchestrator/bun
 */

export type { BunServer } from '../adapters/hosts/bun/to-bun-handler.ts';
export { toBunHandler } from '../adapters/hosts/bun/to-bun-handler.ts';
