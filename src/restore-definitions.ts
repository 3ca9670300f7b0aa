/** Finds what an execution runs with: the definition that it began with, of this process or of the store. */

import type { EnsembleSource } from './define.ts';
import type { CompileHost } from './engine/definition/compile-host.ts';
import { messageOf } from './engine/errors.ts';
import type { AgentDefinition } from './engine/model/ensemble.ts';
import type { StoredDefinition } from './engine/ports/storage.ts';
import { type LoadedEnsemble, loadEnsemble, loadSharedAgent } from './load-definitions.ts';

/**
 * Makes ready what an execution began with: the ensemble of this process where it is still the same definition, otherwise the
 * stored one, compiled once.
 *
 * @returns a function that gives a text when this process lacks what the definition needs
 */
export function createRestore(known: {
  readonly ensembles: ReadonlyMap<string, LoadedEnsemble>;
  readonly agents: ReadonlyMap<string, LoadedEnsemble>;
  readonly host: CompileHost;
}): (definition: StoredDefinition, ensemble: string) => LoadedEnsemble | string {
  const { ensembles, agents, host } = known;
  const restored = new Map<string, LoadedEnsemble | string>();
  const agentName = (ensemble: string) => (ensemble.startsWith('agent:') ? ensemble.slice('agent:'.length) : undefined);

  const load = ({ definition }: StoredDefinition, ensemble: string): LoadedEnsemble | string => {
    const agent = agentName(ensemble);
    try {
      if (agent === undefined) {
        // What the code of today checks of an output, it checks of a run of yesterday too.
        const checkOutput = ensembles.get(ensemble)?.checkOutput;
        const loaded = loadEnsemble(definition as unknown as EnsembleSource, host);
        const missing = loaded.calls.find((call) => !ensembles.has(call.ensemble));
        return missing ? `there is no ensemble \`${missing.ensemble}\`` : { ...loaded, checkOutput };
      }
      const [shared] = definition.agents as unknown as readonly AgentDefinition[];
      return loadSharedAgent(shared as AgentDefinition, host);
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
