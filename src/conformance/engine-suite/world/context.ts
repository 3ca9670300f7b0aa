/** Helpers that the cases of the engine suite share. */

import { isOrchestratorError } from '../../../engine/base/errors.ts';
import { type Execution, isFinal } from '../../../engine/execution/execution.ts';
import type { Process } from './process.ts';
import type { World } from './world.ts';

/** Opens a world, runs `body` in it, and closes it. */
export type InWorld<W = World> = <T>(body: (world: W) => Promise<T>) => Promise<T>;

/** How a group of cases is declared. @typeParam W - the world that the cases need */
export interface Declare<W = World> {
  /** Declares one case, which gets a world of its own. */
  it(name: string, body: (world: W) => Promise<void>): void;
  /** Declares a case that opens its worlds itself. */
  itWorlds(name: string, body: (inWorld: InWorld<W>) => Promise<void>): void;
}

/** Runs `attempt` for a fault before and after call 1, 2, 3 ... until it returns `not reached`: there was no such call. */
export async function atEachCall(
  what: string,
  attempt: (at: number, when: 'before' | 'after') => Promise<'triggered' | 'not reached'>,
): Promise<void> {
  for (let at = 1; ; at++) {
    for (const when of ['before', 'after'] as const) {
      try {
        if ((await attempt(at, when)) === 'not reached') return;
      } catch (thrown) {
        throw new Error(`${what}, ${when} call ${at}: ${(thrown as Error).message}`, { cause: thrown });
      }
    }
  }
}

/** The state of a promise, readable without waiting for it. */
export interface Watched<T> {
  readonly promise: Promise<T>;
  readonly state: 'pending' | 'fulfilled' | 'rejected';
  readonly value: T | undefined;
  readonly error: unknown;
}

export function watched<T>(promise: Promise<T>): Watched<T> {
  const seen = { promise, state: 'pending', value: undefined, error: undefined } as {
    -readonly [K in keyof Watched<T>]: Watched<T>[K];
  };
  promise.then(
    (value) => {
      seen.state = 'fulfilled';
      seen.value = value;
    },
    (error) => {
      seen.state = 'rejected';
      seen.error = error;
    },
  );
  return seen;
}

/** Advances time until the promise is settled. @throws what the promise rejects with */
export async function resultOf<T>(world: World, what: string, promise: Promise<T>, maxMs?: number): Promise<T> {
  const seen = watched(promise);
  await world.until(what, () => seen.state !== 'pending', maxMs);
  return promise;
}

/** @throws Error unless the call rejects with that code */
export async function refused(world: World, code: string, call: Promise<unknown>): Promise<void> {
  const seen = watched(call);
  await world.until(`the refusal with ${code}`, () => seen.state !== 'pending');
  if (seen.state === 'rejected' && isOrchestratorError(seen.error) && seen.error.code === code) return;
  throw new Error(`expected ${code} to be thrown, got ${String(seen.error ?? seen.value)}`);
}

/** Runs the ensemble `e` in a process that is paused at a commit. @returns undefined if the run has no such commit */
export async function pauseAtCommit(
  world: World,
  definition: object,
  at: number,
  when: 'before' | 'after',
): Promise<{ readonly paused: Process; readonly run: Watched<Execution<unknown>> } | undefined> {
  const fault = { method: 'commit', at, when, then: 'pause' } as const;
  const paused = await world.open({ ensembles: [definition], fault });
  const run = watched(paused.subject.execute('e'));
  await world.until('the pause', () => paused.control.triggered || run.state !== 'pending');
  return paused.control.triggered ? { paused, run } : undefined;
}

/** Advances time until `count` executions exist and all of them have ended. @returns them, the oldest first */
export async function allEnded(world: World, count: number, maxMs?: number): Promise<readonly Execution[]> {
  let found: readonly Execution[] = [];
  const look = async () => {
    found = await world.reader.executions.list({ limit: 250 });
    return found.length === count && found.every(({ status }) => isFinal(status));
  };
  await world.until(`the end of ${count} executions`, look, maxMs);
  return [...found].reverse();
}

/** Advances time until an execution has that status. */
export async function becomes(world: World, id: string, status: Execution['status'], maxMs?: number): Promise<void> {
  const look = async () => (await world.reader.executions.get(id))?.status === status;
  await world.until(`${id} to be ${status}`, look, maxMs);
}

/** Labels of the effects, in the order in which they began; of one process if a number is given. */
export function labels({ history }: World, process?: number): readonly string[] {
  const effects =
    process === undefined ? history.effects : history.effects.filter((effect) => effect.process === process);
  return effects.map(({ label }) => label);
}

export function check(holds: boolean, what: string): void {
  if (!holds) throw new Error(what);
}
