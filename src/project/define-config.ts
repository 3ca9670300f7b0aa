/** `defineConfig()`: types for a project folder's `ensemble.config` file. */

import type { OrchestratorOptions } from '../orchestrator/options/options.ts';

/** The default export of `ensemble.config.{js,mjs,ts}`: options of `createOrchestrator`, with names of variables instead of values. */
export interface ProjectConfig extends Omit<OrchestratorOptions, 'env' | 'secrets' | 'clock'> {
  /** Names of process variables that `${env.X}` may read. All variables of `.env` are available without being listed. */
  readonly env?: readonly string[] | undefined;
  /** Names of variables (of the process or of `.env`) whose values never appear in outputs, state, events, errors and logs. */
  readonly secrets?: readonly string[] | undefined;
}

/**
 * Returns the config of a project unchanged, with its type.
 *
 * @example
 * ```ts
 * import { defineConfig } from 'ensemble-orchestrator';
 *
 * export default defineConfig({ env: ['API_URL'], secrets: ['API_KEY'] });
 * ```
 */
export function defineConfig(config: ProjectConfig): ProjectConfig {
  return config;
}
