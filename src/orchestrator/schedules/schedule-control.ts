/** The schedules of the ensembles of an orchestrator, as the public `orchestrator.schedules`: when they are due, paused, resumed, run now. */

import { OrchestratorError } from '../../engine/base/errors.ts';
import type { Json } from '../../engine/base/json/json.ts';
import { refuseUnknownKeys } from '../../engine/base/read-options.ts';
import { quoted } from '../../engine/base/wording.ts';
import type { CompiledSchedule } from '../../engine/compiled/compiled-ensemble.ts';
import type { ExecutionStatus } from '../../engine/execution/execution.ts';
import type { Clock } from '../../engine/host/clock.port.ts';
import { firstProgress, readProgress, type ScheduleProgress, toStored } from '../../engine/schedule/schedule.ts';
import type { ScheduleStore } from '../../engine/schedule/schedule-store.port.ts';
import { alwaysChanged } from '../changes.ts';
import type { LoadedEnsemble } from '../definitions/load-definitions.ts';
import type { ExecutionService } from '../runs/execution-service.ts';
import type { ExecutionHandle } from '../runs/handles.ts';
import type { ExecuteOptions } from '../runs/starts/execute-options.ts';
import { startOf } from './drive-schedule.ts';

/** A schedule of an ensemble. Instants are Unix ms. */
export interface Schedule {
  /** Stays the same while pattern and time zone do. */
  readonly id: string;
  readonly ensemble: string;
  readonly cron: string;
  readonly timezone: string;
  readonly overlap: 'skip' | 'queue';
  readonly catchUp: 'once' | 'skip';
  /** The input of each execution, if the definition has one. */
  readonly input?: Json;
  readonly paused: boolean;
  /** The next three ticks. Empty while it is paused. */
  readonly next: readonly number[];
  /** The tick that started last. */
  readonly last?: {
    readonly scheduledAt: number;
    readonly executionId: string;
    /** Absent: the record was deleted. */
    readonly status?: ExecutionStatus;
  };
}

/**
 * The schedules of the ensembles that code defines. A pause is stored: it holds in every process that uses the storage, and after a restart.
 */
export interface Schedules {
  /** In the order of the ensembles, and of their triggers. */
  list(): Promise<readonly Schedule[]>;
  /** @throws NOT_FOUND */
  get(id: string): Promise<Schedule>;
  /** From now on, its ticks are dropped. Executions that run continue. @throws NOT_FOUND */
  pause(id: string): Promise<Schedule>;
  /** From now on, its ticks start executions again. Those in between are not made up for. @throws NOT_FOUND */
  resume(id: string): Promise<Schedule>;
  /**
   * Starts an execution now, as a tick would, also while it is paused or its last execution runs.
   * @param options - `principal`: who is charged for it
   * @throws NOT_FOUND; limit codes with a principal
   */
  run(id: string, options?: Pick<ExecuteOptions, 'principal'>): Promise<ExecutionHandle>;
}

export interface ScheduleControlDependencies {
  readonly ensembles: Iterable<LoadedEnsemble>;
  readonly schedules: ScheduleStore;
  readonly clock: Clock;
  readonly executionService: () => Pick<ExecutionService, 'start' | 'records'>;
}

interface Known {
  readonly ensemble: LoadedEnsemble;
  readonly schedule: CompiledSchedule;
}

const SHOWN_TICKS = 3;
const MAX_TRIES = 20;

export function createSchedules({
  ensembles,
  schedules,
  clock,
  executionService,
}: ScheduleControlDependencies): Schedules {
  const byId = new Map<string, Known>();
  for (const ensemble of ensembles)
    for (const schedule of ensemble.compiled.schedules) byId.set(idOf(schedule), { ensemble, schedule });

  const find = (id: string): Known => {
    const known = byId.get(id);
    if (known) return known;
    throw new OrchestratorError('NOT_FOUND', `there is no schedule ${quoted(id)}; \`schedules.list()\` has their ids`);
  };

  const read = async ({ name }: CompiledSchedule) => {
    const stored = await schedules.read(name);
    return { progress: stored && readProgress(stored.value, name), version: stored?.version ?? 0 };
  };

  const describe = async ({ ensemble, schedule }: Known): Promise<Schedule> => {
    const { cron, timezone, overlap, catchUp, input, ticks, name } = schedule;
    const { progress } = await read(schedule);
    const next: number[] = [];
    for (let at: number | undefined = clock.now(); !progress?.paused && next.length < SHOWN_TICKS; ) {
      at = ticks.next(at);
      if (at === undefined) break;
      next.push(at);
    }
    return {
      ...{ id: idOf(schedule), ensemble: ensemble.compiled.name, cron, timezone, overlap, catchUp },
      ...(input !== undefined && { input }),
      ...{ paused: progress?.paused === true, next },
      ...(progress?.started !== undefined && { last: await lastOf(name, progress.started) }),
    };
  };

  const lastOf = async (name: string, scheduledAt: number): Promise<NonNullable<Schedule['last']>> => {
    const executionId = startOf(name, scheduledAt).id;
    const found = await executionService().records.executions.getStatus(executionId);
    return { scheduledAt, executionId, ...(found && { status: found.status }) };
  };

  /** @param next - undefined: nothing changes */
  const change = async (id: string, next: (progress: ScheduleProgress) => ScheduleProgress | undefined) => {
    const known = find(id);
    const { name } = known.schedule;
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const { progress, version } = await read(known.schedule);
      const now = clock.now();
      const changed = next(progress ?? firstProgress(now));
      const isStored =
        !changed ||
        (await schedules.advance(name, { expectedVersion: version, value: toStored(changed), updatedAt: now }));
      if (isStored) return describe(known);
    }
    throw alwaysChanged(`schedule ${quoted(id)}`);
  };

  return {
    async list() {
      const found: Schedule[] = [];
      for (const known of byId.values()) found.push(await describe(known));
      return found;
    },
    get: async (id) => describe(find(id)),
    pause: (id) => change(id, (progress) => (progress.paused ? undefined : { ...progress, paused: true })),
    resume: (id) => change(id, ({ paused, ...progress }) => (paused ? { ...progress, seen: clock.now() } : undefined)),
    async run(id, options = {}) {
      refuseUnknownKeys(options, ['principal'], 'schedules.run');
      const { ensemble, schedule } = find(id);
      const { cron, timezone, input } = schedule;
      const trigger = Object.freeze({ type: 'schedule', cron, timezone, scheduledAt: clock.now() } as const);
      return executionService().start(() => ensemble, input ?? {}, options, { trigger, steps: [] });
    },
  };
}

function idOf({ name }: CompiledSchedule): string {
  return name.replace('/', '.');
}
