/** Finds the definition with which an execution began: in this process, or in the storage. */

import type { EnsembleSource } from '../../authoring/define.ts';
import type { CompileHost } from '../../engine/definition/compile/compile-host.ts';
import { messageOf } from '../../engine/base/errors.ts';
import type { AgentDefinition } from '../../engine/model/ensemble.ts';
import type { StoredDefinition } from '../../engine/ports/storage.ts';
import { type LoadedEnsemble, loadEnsemble, loadSharedAgent } from './load-definitions.ts';

/**
 * Loads the definition with which an execution began. If the ensemble of this process has the same version, that ensemble is used.
 * Otherwise the stored definition is compiled, once.
 *
 * @returns a function that returns the ensemble, or a text that says what this process lacks
 */
export function createRestore(known: {
  readonly ensembles: ReadonlyMap<string, LoadedEnsemble>;
  readonly agents: ReadonlyMap<string, LoadedEnsemble>;
  readonly host: CompileHost;
  /** Whether other processes run what this one restores. They know the ensembles that a definition starts. */
  onlyQueues(): boolean;
}): (definition: StoredDefinition, ensemble: string) => LoadedEnsemble | string {
  const { ensembles, agents, host, onlyQueues } = known;
  const restored = new Map<string, LoadedEnsemble | string>();
  const agentName = (ensemble: string) => (ensemble.startsWith('agent:') ? ensemble.slice('agent:'.length) : undefined);

  const load = ({ definition }: StoredDefinition, ensemble: string): LoadedEnsemble | string => {
    const agent = agentName(ensemble);
    try {
      if (agent === undefined) {
        // An `outputSchema` is code and is not stored: the current one also checks earlier executions.
        const checkOutput = ensembles.get(ensemble)?.checkOutput;
        const loaded = loadEnsemble(definition as unknown as EnsembleSource, host);
        const missing = onlyQueues() ? undefined : loaded.calls.find((call) => !ensembles.has(call.ensemble));
        return missing ? `there is no ensemble \`${missing.ensemble}\`` : { ...loaded, checkOutput };
      }
      const [shared, ...others] = definition.agents as unknown as readonly AgentDefinition[];
      return loadSharedAgent(shared as AgentDefinition, host, others);
    } catch (error) {
      return messageOf(error);
    }
  };

  return (definition, ensemble) => {
    const agent = agentName(ensemble);
    const current = agent === undefined ? ensembles.get(ensemble) : agents.get(agent);
    if (current?.compiled.stored.version === definition.version) return current;
    const key = `${definition.version} ${ensemble}`;
    let found = restored.get(key);
    if (found === undefined) {
      found = load(definition, ensemble);
      restored.set(key, found);
    }
    return found;
  };
}
