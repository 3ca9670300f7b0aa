/** What the cases of the engine suite share beside their worlds. */

import { isOrchestratorError } from '../../../engine/errors.ts';
import { type Execution, isFinal } from '../../../engine/model/execution.ts';
import type { World } from './world.ts';

/** Declares one case: it gets a world of its own. */
export type EngineCase = (name: string, body: (world: World) => Promise<void>) => void;

/** Opens a world and takes it away behind what is done in it. */
export type InWorld = <T>(body: (world: World) => Promise<T>) => Promise<T>;

/** Declares a case that opens its worlds itself. */
export type WorldsCase = (name: string, body: (inWorld: InWorld) => Promise<void>) => void;

/** How the cases of one subject are declared. */
export interface Declare {
  readonly it: EngineCase;
  readonly itWorlds: WorldsCase;
}

/** Before and after each call, from the first on, until `survives` is given back: no further call was made. */
export async function atEachCall(
  what: string,
  dies: (at: number, when: 'before' | 'after') => Promise<'struck' | 'survives'>,
): Promise<void> {
  for (let at = 1; ; at++) {
    for (const when of ['before', 'after'] as const) {
      try {
        if ((await dies(at, when)) === 'survives') return;
      } catch (thrown) {
        throw new Error(`${what}, ${when} call ${at}: ${(thrown as Error).message}`, { cause: thrown });
      }
    }
  }
}

/** How a promise stands: looked at, not waited for. */
export interface Watched<T> {
  readonly promise: Promise<T>;
  readonly state: 'open' | 'given' | 'thrown';
  readonly value: T | undefined;
  readonly error: unknown;
}

export function watched<T>(promise: Promise<T>): Watched<T> {
  const seen = { promise, state: 'open', value: undefined, error: undefined } as {
    -readonly [K in keyof Watched<T>]: Watched<T>[K];
  };
  promise.then(
    (value) => {
      seen.state = 'given';
      seen.value = value;
    },
    (error) => {
      seen.state = 'thrown';
      seen.error = error;
    },
  );
  return seen;
}

/** Moves time on until the promise is settled. @throws what it rejects with */
export async function given<T>(world: World, what: string, promise: Promise<T>, mostMs?: number): Promise<T> {
  const seen = watched(promise);
  await world.until(what, () => seen.state !== 'open', mostMs);
  return promise;
}

/** @throws Error unless the call rejects with that code */
export async function refused(world: World, code: string, call: Promise<unknown>): Promise<void> {
  const seen = watched(call);
  await world.until(`the refusal with ${code}`, () => seen.state !== 'open');
  if (seen.state === 'thrown' && isOrchestratorError(seen.error) && seen.error.code === code) return;
  throw new Error(`expected ${code} to be thrown, got ${String(seen.error ?? seen.value)}`);
}

/** Moves time on until all executions have ended. @returns them, the oldest first */
export async function allEnded(world: World, count: number, mostMs?: number): Promise<readonly Execution[]> {
  let found: readonly Execution[] = [];
  const look = async () => {
    found = await world.reader.listExecutions({ limit: 250 });
    return found.length === count && found.every(({ status }) => isFinal(status));
  };
  await world.until(`the end of ${count} executions`, look, mostMs);
  return [...found].reverse();
}

/** Moves time on until an execution has that status. */
export async function becomes(world: World, id: string, status: Execution['status'], mostMs?: number): Promise<void> {
  const look = async () => (await world.reader.getExecution(id))?.status === status;
  await world.until(`${id} to be ${status}`, look, mostMs);
}

/** Labels of the effects, in the order in which they began. */
export function labels({ ledger }: World, process?: number): readonly string[] {
  const effects =
    process === undefined ? ledger.effects : ledger.effects.filter((effect) => effect.process === process);
  return effects.map(({ label }) => label);
}

export function check(holds: boolean, what: string): void {
  if (!holds) throw new Error(what);
}
