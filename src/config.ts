/** `defineConfig()`: types for a project folder's `ensemble.config` file. */

import type { OrchestratorOptions } from './options.ts';

/** What `ensemble.config.{js,mjs,ts}` exports by default: options of `createOrchestrator`, with variables by name. */
export interface ProjectConfig extends Omit<OrchestratorOptions, 'env' | 'secrets' | 'clock'> {
  /** Names of process variables that `${env.X}` may read. All of `.env` is there without being named. */
  readonly env?: readonly string[];
  /** Names (in the process or in `.env`) whose values are kept out of outputs, state, events, errors and logs. */
  readonly secrets?: readonly string[];
}

/**
 * Gives a project's config back as it is, typed.
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
