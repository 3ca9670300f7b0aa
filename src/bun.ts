/** The public names for Bun, beside those of the main entry. */

export type { BunServer } from './adapters/bun/to-bun-handler.ts';
export { toBunHandler } from './adapters/bun/to-bun-handler.ts';
