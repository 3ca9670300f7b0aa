/** Finds the definition with which an execution began: in this process, or in the storage. */

import type { EnsembleSource } from '../../authoring/define.ts';
import { hashJson } from '../../engine/base/bytes/hash.ts';
import { isOrchestratorError, messageOf, OrchestratorError } from '../../engine/base/errors.ts';
import type { CompileHost } from '../../engine/definition/compile/triggers/compile-host.ts';
import type { AgentDefinition } from '../../engine/ensemble/ensemble.ts';
import { agentAlone } from '../../engine/ensemble/name.ts';
import type { Logger } from '../../engine/host/logger.port.ts';
import type { MaybePromise } from '../../engine/operation/operation.port.ts';
import type { StoredDefinition } from '../../engine/storage/storage.port.ts';
import type { Catalog } from './catalog.ts';
import { type LoadedEnsemble, loadSharedAgent, loadStoredEnsemble, logWarnings } from './load-definitions.ts';

/**
 * Loads the definition with which an execution began. If the ensemble of this process has the same version, that ensemble is used.
 * Otherwise the stored definition is compiled, once.
 *
 * @returns a function that returns the ensemble, or a text that says what this process lacks
 */
export function createRestore(known: {
  readonly code: Catalog['code'];
  readonly host: CompileHost;
  readonly hasEnsemble: Catalog['hasEnsemble'];
  readonly logger: Logger;
  /** Whether other processes run what this one restores. They know the ensembles that a definition starts. */
  onlyQueues(): boolean | undefined;
}): (definition: StoredDefinition, ensemble: string) => MaybePromise<LoadedEnsemble | string> {
  const { code, host, hasEnsemble, logger, onlyQueues } = known;
  const restored = new Map<string, MaybePromise<LoadedEnsemble | string>>();

  const load = async (
    { definition, version }: StoredDefinition,
    ensemble: string,
  ): Promise<LoadedEnsemble | string> => {
    const agent = agentAlone(ensemble);
    try {
      if (agent === undefined) {
        // An `outputSchema` is code and is not stored: the current one also checks earlier executions.
        const checkOutput = code.ensemble.get(ensemble)?.checkOutput;
        const loaded = loadStoredEnsemble(definition as unknown as EnsembleSource, host);
        logWarnings([loaded], logger);
        if (!onlyQueues()) {
          for (const call of loaded.calls) {
            if (!(await hasEnsemble(call.ensemble))) return `there is no ensemble \`${call.ensemble}\``;
          }
        }
        return { ...loaded, checkOutput };
      }
      const [shared, ...others] = definition.agents as unknown as readonly AgentDefinition[];
      return loadSharedAgent(shared as AgentDefinition, host, others);
    } catch (error) {
      // The storage did not answer, which says nothing about the definition.
      if (isOrchestratorError(error) && error.retryable) throw error;
      // What was stored under this hash could be compiled once. Then a script or another part is missing here, or the row was changed.
      if (hashJson(definition) !== version) throw damagedDefinition(version, error);
      return messageOf(error);
    }
  };

  return (definition, ensemble) => {
    const agent = agentAlone(ensemble);
    const current = agent === undefined ? code.ensemble.get(ensemble) : code.agent.get(agent);
    if (current?.compiled.stored.version === definition.version) return current;
    const key = `${definition.version} ${ensemble}`;
    const earlier = restored.get(key);
    if (earlier !== undefined) return earlier;
    const found = load(definition, ensemble);
    restored.set(key, found);
    const forget = () => restored.delete(key);
    // What is missing may be created later.
    found.then((late) => (typeof late === 'string' ? forget() : restored.set(key, late)), forget);
    return found;
  };
}

function damagedDefinition(version: string, cause: unknown): OrchestratorError {
  const row = `definition ${version}`;
  const message = `the stored ${row} is not the one that was stored; restore it from a backup`;
  return new OrchestratorError('INTERNAL', message, { cause, details: { row } });
}
