/** Refuses a signal whose name no `wait` of its execution can have. */

import { OrchestratorError } from '../../engine/base/errors.ts';
import { MAX_NAMED, suggestName } from '../../engine/base/suggest-name.ts';
import type { ExecutionSummary } from '../../engine/execution/execution.ts';
import { innerLists } from '../../engine/ensemble/inner-lists.ts';
import type { DefinitionStore } from '../../engine/storage/storage.port.ts';

/**
 * Checks the name of a signal against the definition with which its execution began. Each definition is read once.
 *
 * @returns a function that throws INVALID_INPUT, with the names of the waits in `details.waits`. It accepts every name when the
 *   definition is not stored
 */
export function createSignalCheck(
  definitions: DefinitionStore,
): (execution: Pick<ExecutionSummary, 'ensemble' | 'version'>, name: string) => Promise<void> {
  const byVersion = new Map<string, ReadonlySet<string> | 'any'>();
  const namesOf = async (version: string): Promise<ReadonlySet<string> | 'any'> => {
    const known = byVersion.get(version);
    if (known) return known;
    const stored = await definitions.get(version);
    if (!stored) return 'any';
    const names = awaitedNames(stored.definition.flow);
    byVersion.set(version, names);
    return names;
  };
  return async ({ ensemble, version }, name) => {
    const names = await namesOf(version);
    if (names === 'any' || names.has(name)) return;
    const near = suggestName(name, names);
    const waits = [...names].slice(0, MAX_NAMED);
    const known = `its waits take ${waits.map((one) => `\`${one}\``).join(', ')}${names.size > MAX_NAMED ? ', ...' : ''}`;
    const help = names.size === 0 ? 'it has no `wait`' : `${near ? `did you mean \`${near}\`? ` : ''}${known}`;
    throw new OrchestratorError('INVALID_INPUT', `no \`wait\` of \`${ensemble}\` takes a signal \`${name}\`; ${help}`, {
      details: { waits },
    });
  };
}

/**
 * The names of the signals that a flow can wait for, also inside blocks.
 *
 * @returns `any` when a `wait` has another form than a name: then its names are known only when it runs
 */
export function awaitedNames(flow: unknown): ReadonlySet<string> | 'any' {
  const names = new Set<string>();
  const lists: unknown[] = [flow];
  for (let list = lists.pop(); list !== undefined; list = lists.pop()) {
    for (const step of list as readonly object[]) {
      const { wait } = step as { readonly wait?: unknown };
      if (typeof wait === 'string' && !wait.includes('${')) names.add(wait);
      else if (wait !== undefined) return 'any';
      for (const { steps } of innerLists(step)) lists.push(steps);
    }
  }
  return names;
}
