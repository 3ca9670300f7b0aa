/**
 * Advances rollouts and rolls them back. Each process counts the executions that end in it, and adds them once a second to what is stored for
 * the step. Of several processes that find a step over, or its guard broken, one makes the change.
 */

import type { JsonObject } from '../../engine/base/json/json.ts';
import type { Emitter } from '../../engine/events/rules/emitter.ts';
import type { Deployment, Rollout, UsedComponent } from '../../engine/component/component.ts';
import type { Execution } from '../../engine/execution/execution.ts';
import { isBroken, type StepCount } from '../../engine/component/guard.ts';
import type { Clock } from '../../engine/host/clock.port.ts';
import type { ComponentSource, StoredComponent } from '../../engine/component/component-source.port.ts';
import type { DocumentStore } from '../../engine/storage/document-store.port.ts';
import type { Logger } from '../../engine/host/logger.port.ts';
import type { TimedTask, TimedWork } from '../timed/timed-work.ts';
import type { ComponentCache } from './component-cache.ts';
import { nextStep, rolledBack } from './new-deployment.ts';

export interface Rollouts {
  readonly task: TimedTask;
  attach(work: Pick<TimedWork, 'wake'>): void;
  /** An execution has ended in this process. */
  ended(execution: Pick<Execution, 'id' | 'ensemble' | 'status' | 'components'>): void;
}

export interface RolloutDependencies {
  readonly source: ComponentSource;
  readonly cache: ComponentCache;
  readonly documents: DocumentStore;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly events: Emitter;
}

/** An environment of a component whose executions this process counts. */
interface Watched {
  readonly name: string;
  readonly environment: string;
  /** What is not stored yet, by version. */
  counts: Map<string, StepCount>;
  /** The last execution that ended, for the event. */
  last: { readonly executionId: string; readonly ensemble: string };
}

const KIND = 'component-rollout';
/** How long counts wait for others, ms. */
const FLUSH_MS = 1_000;
/** The same after a failure: a process that is killed takes few of them along. */
const FAILURE_FLUSH_MS = 50;
const FAILED: readonly string[] = ['failed', 'timed_out'];

export function createRollouts(dependencies: RolloutDependencies): Rollouts {
  const { source, cache, clock, logger, events } = dependencies;
  const watched = new Map<string, Watched>();
  let work: Pick<TimedWork, 'wake'> | undefined;

  const move = async ({ name, environment }: Watched, expected: Deployment, deployment: Deployment) => {
    const isMoved = await source.move(name, { environment, expected, deployment });
    cache.forget(name);
    return isMoved;
  };

  const rollBack = async (one: Watched, deployment: Deployment, rollout: Rollout, { runs, failures }: StepCount) => {
    const { name, environment } = one;
    const { guard, version: from } = rollout;
    const message = `${from} was rolled back: ${failures} of ${runs} executions failed, and the guard is ${guard}`;
    const next = rolledBack(deployment, clock.now(), message);
    if (!(await move(one, deployment, next))) return;
    const details = { component: name, environment, from, to: next.version, guard, runs, failures };
    logger.warn({ ...one.last, ...details }, 'a component was rolled back by its guard');
    if (events.hasListeners) events.emit('component.rolledBack', { ...one.last, ...details });
  };

  const findRollout = async ({ name, environment }: Watched): Promise<Deployment | undefined> => {
    const find = (component: StoredComponent | undefined) =>
      component?.deployments.find((one) => one.environment === environment);
    // A split without a rollout costs no read.
    if (!find(await cache.read(name))?.rollout) return undefined;
    return find(await source.read(name));
  };

  /** @returns when to look again, Unix ms. Undefined: the rollout is over */
  const advance = async (one: Watched): Promise<number | undefined> => {
    const deployment = await findRollout(one);
    const { rollout } = deployment ?? {};
    const { counts } = one;
    one.counts = new Map();
    if (!deployment || !rollout) return undefined;
    const more = counts.get(rollout.version) ?? NONE;
    const count = await addCount(dependencies, one, deployment, rollout, more).catch((error: unknown) => {
      add(one, rollout.version, more);
      throw error;
    });
    const broken = [count, plus(count, count.earlier)].find((counted) => isBroken(rollout.guard, counted));
    if (broken) {
      await rollBack(one, deployment, rollout, broken);
      return undefined;
    }
    const endsAt = deployment.deployedAt + rollout.everyMs;
    const now = clock.now();
    if (now < endsAt) return endsAt;
    // A step in which nothing used the version says nothing. The next execution looks again.
    if (count.runs === 0) return Number.POSITIVE_INFINITY;
    await move(one, deployment, nextStep(deployment, rollout, now));
    return now + FLUSH_MS;
  };

  const task: TimedTask = {
    async advance() {
      let nextAt = Number.POSITIVE_INFINITY;
      for (const [key, one] of watched) {
        const at = await advance(one);
        if (at === undefined && one.counts.size === 0) watched.delete(key);
        nextAt = Math.min(nextAt, at ?? Number.POSITIVE_INFINITY);
      }
      return { nextAt: nextAt === Number.POSITIVE_INFINITY ? undefined : nextAt };
    },
    logFailure: (err, againInMs) => logger.warn({ err, againInMs }, 'rollouts of components could not be advanced'),
  };

  return {
    task,
    attach(to) {
      work = to;
    },
    ended({ id, ensemble, status, components }) {
      if (status === 'cancelled') return;
      const isFailed = FAILED.includes(status);
      for (const used of components ?? []) {
        if (!used.split) continue;
        count(watched, used, isFailed, { executionId: id, ensemble });
        work?.wake(task, clock.now() + (isFailed ? FAILURE_FLUSH_MS : FLUSH_MS));
      }
    },
  };
}

const NONE: StepCount = { runs: 0, failures: 0 };

/** What is stored of a rollout: the counts of one of its steps, and of the steps before that. */
interface StoredCount extends StepCount {
  readonly deployedAt: number;
  /** Absent where an earlier version of the library has counted. */
  readonly earlier?: StepCount;
}

function plus(one: StepCount, other: StepCount): StepCount {
  return { runs: one.runs + other.runs, failures: one.failures + other.failures };
}

function count(
  watched: Map<string, Watched>,
  { name, ref: environment, version }: UsedComponent,
  isFailed: boolean,
  last: Watched['last'],
): void {
  const key = `${name}@${environment}`;
  const one = watched.get(key) ?? { name, environment, counts: new Map<string, StepCount>(), last };
  add(one, version, { runs: 1, failures: isFailed ? 1 : 0 });
  one.last = last;
  watched.set(key, one);
}

function add({ counts }: Watched, version: string, more: StepCount): void {
  counts.set(version, plus(counts.get(version) ?? NONE, more));
}

/** Adds to what is stored for the step. @returns the sum, which is stored then */
async function addCount(
  { documents, clock }: RolloutDependencies,
  { name, environment }: Watched,
  { deployedAt }: Deployment,
  { step }: Rollout,
  more: StepCount,
): Promise<Required<StoredCount>> {
  const key = `${name}@${environment}`;
  for (;;) {
    const now = clock.now();
    const stored = await documents.read(KIND, key, now);
    const known = stored?.value as StoredCount | undefined;
    const { earlier: before = NONE } = known ?? {};
    const isSame = known?.deployedAt === deployedAt;
    // The counts of an earlier rollout end with its steps: another one begins with its first step.
    const earlier = isSame ? before : known && step > 0 ? plus(known, before) : NONE;
    const sum = { deployedAt, ...plus(isSame ? known : NONE, more), earlier };
    if (more.runs === 0) return sum;
    const value = sum as unknown as JsonObject;
    const change = { expectedVersion: stored?.version ?? 0, document: { value, tag: '', updatedAt: now }, now };
    if (await documents.write(KIND, key, change)) return sum;
  }
}
