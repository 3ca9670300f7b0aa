/**
 * Advances rollouts and rolls them back. Each process counts the executions that end in it, and adds them once a second to what is stored for
 * the step. Of several processes that find a step over, or its guard broken, one makes the change.
 */

import type { JsonObject } from '../../engine/base/json/json.ts';
import type { MaybePromise } from '../../engine/base/maybe-promise.ts';
import type { Deployment, Rollout } from '../../engine/component/component.ts';
import { isBroken, type StepCount } from '../../engine/component/guard.ts';
import type { RolledBack } from '../../engine/events/event.ts';
import type { Clock } from '../../engine/host/clock.port.ts';
import type { Logger } from '../../engine/host/logger.port.ts';
import type { DocumentStore } from '../../engine/storage/document-store.port.ts';
import type { TimedTask, TimedWork } from '../timed/timed-work.ts';
import { nextStep, rolledBack } from './new-deployment.ts';

/** What is deployed: an environment of a component, or the traffic of an ensemble. */
export interface DeployedPlace {
  readonly name: string;
  readonly environment: string;
}

/** A deployment that a guard may roll back. Without a guard, it is only read. */
export interface GuardedDeployment extends Deployment {
  /** Of shares that stay: see `EnsembleTraffic`. */
  readonly guard?: string | undefined;
}

/** Where deployments are kept. */
export interface DeploymentStore {
  /** The kind of the documents with their counts. */
  readonly kind: string;
  /** What people call a version. */
  nameOf(deployment: GuardedDeployment, version: string): string;
  /** Whether there is a guard, by what this process knows. */
  mayHaveGuard(place: DeployedPlace): MaybePromise<boolean>;
  read(place: DeployedPlace): MaybePromise<GuardedDeployment | undefined>;
  /** @returns false if the deployment is not the expected one any more */
  move(place: DeployedPlace, expected: GuardedDeployment, deployment: Deployment): MaybePromise<boolean>;
  /** Says that a guard has rolled back. @param last - the execution that ended last in this process */
  report(place: DeployedPlace, change: RolledBack, last: LastExecution): void;
}

export interface LastExecution {
  readonly executionId: string;
  readonly ensemble: string;
}

export interface Rollouts {
  readonly task: TimedTask;
  attach(work: Pick<TimedWork, 'wake'>): void;
  /** An execution with a version of a split has ended in this process. */
  ended(place: DeployedPlace, version: string, isFailed: boolean, last: LastExecution): void;
  /** Deletes what is counted of a place. */
  remove(place: DeployedPlace): Promise<void>;
  /** What is counted of a deployment, by version. */
  counts(place: DeployedPlace, deployment: GuardedDeployment): Promise<Readonly<Record<string, StepCount>>>;
}

export interface RolloutDependencies {
  readonly store: DeploymentStore;
  readonly documents: DocumentStore;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** A place whose executions this process counts. */
interface Watched extends DeployedPlace {
  /** What is not stored yet, by version. */
  counts: Map<string, StepCount>;
  /** The last execution that ended, for the event. */
  last: LastExecution;
}

/** How long counts wait for others, ms. */
const FLUSH_MS = 1_000;
/** The same after a failure: a process that is killed takes few of them along. */
const FAILURE_FLUSH_MS = 50;

export function createRollouts(dependencies: RolloutDependencies): Rollouts {
  const { store, clock, logger } = dependencies;
  const watched = new Map<string, Watched>();
  let work: Pick<TimedWork, 'wake'> | undefined;

  const rollBack = async (one: Watched, deployment: GuardedDeployment, rollout: Rollout, counted: StepCount) => {
    const { runs, failures } = counted;
    const { guard } = rollout;
    const from = store.nameOf(deployment, rollout.version);
    const message = `${from} was rolled back: ${failures} of ${runs} executions failed, and the guard is ${guard}`;
    const next = rolledBack(deployment, clock.now(), message);
    if (await store.move(one, deployment, next))
      store.report(one, { from, to: store.nameOf(deployment, next.version), guard, runs, failures }, one.last);
  };

  /** @returns how many executions had the version in this step. Undefined: its guard has rolled it back */
  const check = async (one: Watched, deployment: GuardedDeployment, rollout: Rollout, counts: Watched['counts']) => {
    const count = await addCount(dependencies, one, deployment, rollout, counts.get(rollout.version) ?? NONE);
    counts.delete(rollout.version);
    const broken = [count, plus(count, count.earlier)].find((counted) => isBroken(rollout.guard, counted));
    if (!broken) return count.runs;
    await rollBack(one, deployment, rollout, broken);
    return undefined;
  };

  /** @returns when to look again, Unix ms. Undefined: the rollout is over */
  const advance = async (one: Watched): Promise<number | undefined> => {
    // A split without a guard costs no read.
    const deployment = (await store.mayHaveGuard(one)) ? await store.read(one) : undefined;
    const { counts } = one;
    one.counts = new Map();
    if (!deployment) return undefined;
    const { rollout } = deployment;
    let runs: number | undefined;
    try {
      for (const guarded of guardedIn(deployment)) {
        runs = await check(one, deployment, guarded, counts);
        if (runs === undefined) return undefined;
      }
    } catch (error) {
      for (const [version, count] of counts) add(one, version, count);
      throw error;
    }
    if (!rollout) return undefined;
    const endsAt = deployment.deployedAt + rollout.everyMs;
    const now = clock.now();
    if (now < endsAt) return endsAt;
    // A step in which nothing used the version says nothing. The next execution looks again.
    if (runs === 0) return Number.POSITIVE_INFINITY;
    await store.move(one, deployment, nextStep(deployment, rollout, now));
    return now + FLUSH_MS;
  };

  const task: TimedTask = {
    async advance() {
      let nextAt = Number.POSITIVE_INFINITY;
      for (const [key, one] of watched) {
        const at = await advance(one);
        if (at === undefined && one.counts.size === 0) watched.delete(key);
        // What came while this was stored is stored next.
        nextAt = Math.min(
          nextAt,
          at ?? Number.POSITIVE_INFINITY,
          one.counts.size > 0 ? clock.now() + FLUSH_MS : Number.POSITIVE_INFINITY,
        );
      }
      return { nextAt: nextAt === Number.POSITIVE_INFINITY ? undefined : nextAt };
    },
    logFailure: (err, againInMs) => logger.warn({ err, againInMs }, 'rollouts could not be advanced'),
  };

  return {
    task,
    attach(to) {
      work = to;
    },
    ended({ name, environment }, version, isFailed, last) {
      const key = `${name}@${environment}`;
      const one = watched.get(key) ?? { name, environment, counts: new Map<string, StepCount>(), last };
      add(one, version, { runs: 1, failures: isFailed ? 1 : 0 });
      one.last = last;
      watched.set(key, one);
      work?.wake(task, clock.now() + (isFailed ? FAILURE_FLUSH_MS : FLUSH_MS));
    },
    async remove({ name, environment }) {
      const { documents } = dependencies;
      const after = `${name}@`;
      const now = clock.now();
      for (const one of await documents.list(store.kind, { limit: 500, after, now }))
        if (one.name.startsWith(`${after}${environment}`))
          await documents.write(store.kind, one.name, { expectedVersion: one.version, now });
    },
    async counts(place, deployment) {
      const known: Record<string, StepCount> = {};
      for (const one of guardedIn(deployment)) {
        const { runs, failures, earlier } = await addCount(dependencies, place, deployment, one, NONE);
        known[one.version] = plus({ runs, failures }, earlier);
      }
      return known;
    },
  };
}

/** What has a guard: a rollout; or of shares that stay, each version but the largest, as a rollout without steps. */
function guardedIn({ guard, split = {}, version: main, rollout }: GuardedDeployment): readonly Rollout[] {
  if (rollout) return [rollout];
  if (guard === undefined) return [];
  const others = Object.keys(split).filter((version) => version !== main);
  return others.map((version) => ({ version, guard, steps: [], step: 0, everyMs: Number.POSITIVE_INFINITY }));
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

function add({ counts }: Watched, version: string, more: StepCount): void {
  counts.set(version, plus(counts.get(version) ?? NONE, more));
}

/** Adds to what is stored for the step. @returns the sum, which is stored then */
async function addCount(
  { store: { kind }, documents, clock }: RolloutDependencies,
  { name, environment }: DeployedPlace,
  { deployedAt, rollout }: Deployment,
  { step, version }: Rollout,
  more: StepCount,
): Promise<Required<StoredCount>> {
  // Of shares that stay, each version is counted apart.
  const key = `${name}@${environment}${rollout ? '' : `:${version}`}`;
  for (;;) {
    const now = clock.now();
    const stored = await documents.read(kind, key, now);
    const known = stored?.value as StoredCount | undefined;
    const { earlier: before = NONE } = known ?? {};
    const isSame = known?.deployedAt === deployedAt;
    // The counts of an earlier rollout end with its steps: another one begins with its first step.
    const earlier = isSame ? before : known && step > 0 ? plus(known, before) : NONE;
    const sum = { deployedAt, ...plus(isSame ? known : NONE, more), earlier };
    if (more.runs === 0) return sum;
    const value = sum as unknown as JsonObject;
    const change = { expectedVersion: stored?.version ?? 0, document: { value, tag: '', updatedAt: now }, now };
    if (await documents.write(kind, key, change)) return sum;
  }
}
