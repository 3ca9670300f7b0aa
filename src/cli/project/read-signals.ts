/** Reads the signals that `ensemble run --signal` sends, and checks their names. */

import { messageOf } from '../../engine/base/errors.ts';
import { suggestName } from '../../engine/base/suggest-name.ts';
import { innerLists } from '../../engine/ensemble/inner-lists.ts';
import * as start from '../start.ts';
import { wrongUsage } from '../terminal/cli-error.ts';
import { oneLine } from '../terminal/text.ts';
import { readInput } from './read-input.ts';

/** The payloads of each name, in the order in which they are sent. */
export type GivenSignals = ReadonlyMap<string, readonly unknown[]>;

/**
 * @param given - each `name`, `name=json` or `name=@file`
 * @param check - called with the names
 * @throws CliError for a payload that is not JSON
 */
export async function readSignals(
  given: readonly string[],
  host: { readonly cwd: string; readonly process: Pick<NodeJS.Process, 'stdin'> },
  check: (names: Iterable<string>) => Promise<void>,
): Promise<GivenSignals> {
  const signals = new Map<string, unknown[]>();
  for (const text of given) {
    const [, name = '', value] = /^([^=]*)(?:=(.*))?$/s.exec(text) ?? [];
    const payloads = signals.get(name) ?? [];
    signals.set(name, payloads);
    payloads.push(await readPayload(name, value, host));
  }
  if (signals.size > 0) await check(signals.keys());
  return signals;
}

async function readPayload(
  name: string,
  value: string | undefined,
  { cwd, process }: Parameters<typeof readSignals>[1],
): Promise<unknown> {
  if (value === undefined) return null;
  if (value.startsWith('@')) return readInput(value, cwd, process.stdin, { option: '--signal' });
  try {
    return JSON.parse(value);
  } catch (error) {
    const help = `write --signal '${name}={"key": "value"}', or --signal '${name}="text"' for text`;
    throw wrongUsage(`the payload of --signal ${oneLine(name)} is not JSON: ${oneLine(messageOf(error))}; ${help}`);
  }
}

/** @throws CliError for a name that no `wait` of the ensemble and of the ensembles that it starts can have */
export async function checkSignals(
  orchestrator: start.Orchestrator,
  ensemble: string,
  names: Iterable<string>,
): Promise<void> {
  const known = await namesOf(orchestrator, ensemble);
  if (known === 'any') return;
  for (const name of names) {
    if (known.has(name)) continue;
    const near = suggestName(name, known);
    const list = known.size === 0 ? 'it has no `wait`' : `its waits take ${[...known].join(', ')}`;
    const help = near ? `did you mean ${near}?` : list;
    throw wrongUsage(`no \`wait\` of ${ensemble} takes the signal ${JSON.stringify(name)} of --signal; ${help}`);
  }
}

async function namesOf({ ensembles }: start.Orchestrator, ensemble: string): Promise<ReadonlySet<string> | 'any'> {
  const names = new Set<string>();
  const found = new Set([ensemble]);
  for (const one of found) {
    const { flow } = (await ensembles.get(one)).definition;
    const own = start.awaitedSignals(flow);
    if (own === 'any') return 'any';
    for (const name of own.keys()) names.add(name);
    for (const child of childrenOf(flow)) found.add(child);
  }
  return names;
}

/** The ensembles that a flow starts. */
function childrenOf(steps: readonly object[]): string[] {
  return steps.flatMap((step) => {
    const { ensemble } = step as { readonly ensemble?: string };
    const inner = innerLists(step).flatMap((list) => childrenOf(list.steps));
    return ensemble === undefined ? inner : [ensemble, ...inner];
  });
}
