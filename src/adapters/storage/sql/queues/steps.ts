/** Steps whose answers are there at once, or later: what is written with them serves both databases. */

import { isPromise, type MaybePromise } from '../../../../engine/base/maybe-promise.ts';

export type Steps<T> = Generator<MaybePromise<unknown>, T, unknown>;

export function* wait<T>(value: MaybePromise<T>): Steps<T> {
  return (yield value) as T;
}

/** Runs steps whose answers are all there at once. */
export function runNow<T>(steps: Steps<T>): T {
  let step = steps.next();
  while (!step.done) step = steps.next(step.value);
  return step.value;
}

export async function runLater<T>(steps: Steps<T>): Promise<T> {
  let step = steps.next();
  while (!step.done) step = steps.next(isPromise(step.value) ? await step.value : step.value);
  return step.value;
}
