/** The public names for Deno, beside those of the main entry. */

export type { DenoServeInfo } from './adapters/deno/to-deno-handler.ts';
export { toDenoHandler } from './adapters/deno/to-deno-handler.ts';
