/** Runs an execution dry: no operation runs, a wait takes no time, and nothing but the record with its plan is stored. */

import { manualClock } from '../../adapters/clock/manual-clock.ts';
import { type ErrorCode, messageOf, OrchestratorError } from '../../engine/base/errors.ts';
import { cloneJson, type Json, type JsonObject } from '../../engine/base/json/json.ts';
import type { MaybePromise } from '../../engine/base/maybe-promise.ts';
import { placeOf } from '../../engine/ensemble/flow-places.ts';
import { type DryRunOptions, type Execution, PLAN_KEY, type PlannedStep } from '../../engine/execution/execution.ts';
import type {
  AttachedEngine,
  ExecutionOutcome,
  InterpretedRun,
  LoadedDefinition,
  RunOptions,
} from '../../engine/execution/execution-engine.port.ts';
import type { IdSource } from '../../engine/execution/id.ts';
import type { Journal } from '../../engine/execution/journal.port.ts';
import type { NewExecution, StepRecord } from '../../engine/execution/stored-execution.ts';
import type { Clock } from '../../engine/host/clock.port.ts';
import type { Masking } from '../../engine/host/masking.port.ts';
import type { RunPorts } from '../../engine/interpreter/run.ts';
import { runEnsemble } from '../../engine/interpreter/run-ensemble.ts';
import { Turns } from '../../engine/interpreter/turns.ts';
import { type DryAnswer, DryJournal, type DryRun } from '../../engine/running/dry-journal.ts';
import { DryPlan } from '../../engine/running/dry-plan.ts';
import type { RecordReader, Storage } from '../../engine/storage/storage.port.ts';
import type { LoadedEnsemble } from '../definitions/load-definitions.ts';
import { createChildren } from '../runs/children.ts';
import { readRecords } from '../runs/read-records.ts';
import type { Find } from '../runs/starts/with-current-definition.ts';
import { answerOf, endedRun, nameAt, RecordedSteps, typeAt } from './dry-answers.ts';

/** A `while` whose answers are made up may never end. */
const MAX_ROUNDS = 3;
/** A dry run that takes longer in real time is stopped: a script does not end. */
const MAX_REAL_MS = 60_000;
/** Operations of the library whose work is outside. `runScripts` does not run them. */
const OUTSIDE: ReadonlySet<string> = new Set(['api', 'think', 'tools', 'email', 'sms', 'pdf', 'storage']);

interface DryRunDependencies {
  readonly ports: RunPorts;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly json: Masking['json'];
  readonly states: Storage['state'];
  readonly records: () => RecordReader;
  readonly turns: Turns;
  find(name: string): ReturnType<Find>;
}

export interface DryRuns {
  /** Runs an execution with `trigger.dryRun` to its end. Its results and its plan are stored through the journal. */
  run(ensemble: LoadedEnsemble, execution: NewExecution, journal: Journal, options: RunOptions): InterpretedRun;
  /**
   * The input of a dry run: the given one, or that of the execution of `like`.
   * @throws NOT_FOUND, INVALID_REQUEST if that is of another ensemble
   */
  inputOf(options: DryRunOptions, ensemble: string, given: unknown): Promise<unknown>;
  /** Runs an execution with `trigger.dryRun` to its end, and stores nothing. */
  shadow(ensemble: LoadedEnsemble, execution: NewExecution): Promise<RanDry>;
}

export interface RanDry {
  readonly outcome: ExecutionOutcome;
  readonly steps: readonly PlannedStep[];
}

export function createDryRuns(dependencies: DryRunDependencies): DryRuns {
  const { clock, records } = dependencies;
  const inputOf: DryRuns['inputOf'] = async ({ like }, ensemble, given) => {
    if (like === undefined) return given;
    const execution = await records().executions.getAccepted(like);
    if (!execution) throw new OrchestratorError('NOT_FOUND', `\`like\`: there is no execution ${like}`);
    if (execution.ensemble !== ensemble)
      throw new OrchestratorError(
        'INVALID_REQUEST',
        `\`like\`: execution ${like} is of \`${execution.ensemble}\`, not of \`${ensemble}\``,
      );
    return given === undefined ? cloneJson(execution.input) : given;
  };
  return {
    inputOf,
    async shadow(ensemble, execution) {
      const world = new DryWorld(dependencies, execution, NEW);
      const recorded = await world.read();
      if (recorded !== undefined) return { outcome: failed('NOT_FOUND', recorded), steps: [] };
      const outcome = await world.drive(ensemble, execution, clock);
      return { outcome, steps: world.plan.steps as readonly PlannedStep[] };
    },
    run(ensemble, execution, journal, { cancelled, signal }) {
      const world = new DryWorld(dependencies, execution, { resumed: false, cancelled, signal });
      const outcome = conclude(world, ensemble, execution, journal);
      return {
        outcome,
        stop: (reason, atOnce) => world.stop((run) => run.stop(reason, atOnce)),
        abandon: () => world.stop((run) => run.abandon()),
      };
    },
  };

  async function conclude(
    world: DryWorld,
    ensemble: LoadedEnsemble,
    execution: NewExecution,
    journal: Journal,
  ): Promise<ExecutionOutcome> {
    try {
      const recorded = await world.read();
      if (recorded !== undefined) return failed('NOT_FOUND', recorded);
      const outcome = await world.drive(ensemble, execution, clock);
      if (outcome.status === 'lost') return outcome;
      for (const record of world.results) await storeResult(record, journal);
      const plan = () => world.plan.steps as unknown as Json;
      await journal.decide(PLAN_KEY, plan, { name: '', at: execution.createdAt });
      return outcome;
    } catch (thrown) {
      return failed('INTERNAL', `the dry run failed: ${messageOf(thrown)}`);
    }
  }
}

async function storeResult(record: StepRecord, journal: Journal): Promise<void> {
  await journal.step(record.key, record.attempts, (store) => store(record), { last: false }, record.name);
}

function failed(code: ErrorCode, message: string): ExecutionOutcome {
  return { status: 'failed', output: null, error: { code, message } };
}

/** One dry run, with those of its children. */
class DryWorld {
  readonly plan: DryPlan;
  readonly #dependencies: DryRunDependencies;
  readonly #options: DryRunOptions;
  readonly #how: RunOptions;
  readonly #clock;
  readonly #ports: RunPorts;
  /** Where the steps of an execution are, by its id: see `PlannedStep.within`. */
  readonly #places = new Map<string, string | undefined>();
  /** By the id of the execution. */
  readonly #runs = new Map<string, InterpretedRun>();
  readonly #recorded: RecordedSteps = new RecordedSteps();
  /** How often the steps at a place have run. */
  readonly #turns = new Map<string, number>();
  /** The states of ensembles, as the dry run has them. */
  readonly #states = new Map<string, JsonObject | undefined>();
  #root: DryJournal | undefined;
  #children = 0;
  #begunChildren = 0;
  /** How many pieces of real work have begun and not ended. */
  #working = 0;
  #onWorked: (() => void) | undefined;
  #stopped: ((run: InterpretedRun) => void) | undefined;

  constructor(dependencies: DryRunDependencies, execution: NewExecution, how: RunOptions) {
    const { createdAt, trigger } = execution;
    this.#dependencies = dependencies;
    this.#options = trigger.dryRun ?? {};
    this.#how = how;
    this.#clock = manualClock({ now: createdAt });
    const { ports, ids, find, json } = dependencies;
    const { env, mask, resolveComponent } = ports;
    const clock = this.#clock;
    this.plan = new DryPlan(
      () => clock.now() - createdAt,
      (value) => JSON.parse(json(value) as string),
    );
    const children = createChildren({
      ...{ clock, ids, tracing: undefined, forget() {} },
      // The same in each dry run of the execution, so that a split chooses the same version of a child.
      newId: () => `${execution.id}-${++this.#begunChildren}`,
      find: (name) => this.#work(() => find(name)),
      engine: () => this.#engine(),
      toLoadedDefinition: (ensemble) => this.#toDryDefinition(ensemble),
    });
    this.#ports = {
      ...{ clock, children, env, mask, turns: new Turns(clock, dependencies.clock), keepsStacks: false },
      ...{ emit: undefined, logger: undefined },
      get maxRounds() {
        return MAX_ROUNDS + recorded.rounds;
      },
      resolveComponent: resolveComponent && ((...given) => this.#work(() => resolveComponent(...given))),
    };
    const recorded = this.#recorded;
  }

  get results(): readonly StepRecord[] {
    return this.#root?.records ?? [];
  }

  stop(by: (run: InterpretedRun) => void): void {
    this.#stopped = by;
    for (const run of this.#runs.values()) by(run);
    this.#onWorked?.();
  }

  /** Reads what the execution of `like` has recorded. @returns why it can't be read */
  async read(): Promise<string | undefined> {
    const { like } = this.#options;
    if (like === undefined) return undefined;
    const { records, turns } = this.#dependencies;
    if (!(await records().executions.getStatus(like))) return `\`like\`: there is no execution ${like}`;
    for await (const record of readRecords(records(), turns, like)) this.#recorded.add(record);
    return undefined;
  }

  async drive(ensemble: LoadedEnsemble, execution: NewExecution, real: Clock): Promise<ExecutionOutcome> {
    const { dryRun: _dry, ...trigger } = execution.trigger;
    let outcome: ExecutionOutcome | undefined;
    let isLate = false;
    const cancelTimer = real.setTimer(MAX_REAL_MS, () => {
      isLate = true;
      this.stop((run) => run.abandon());
    });
    void this.#begin(ensemble, { ...execution, trigger }, this.#how).outcome.then((ended) => {
      outcome = ended;
    });
    while (!isLate && (outcome === undefined || this.#runs.size > 0)) {
      await this.#clock.advance(0);
      if (isLate || outcome?.status === 'lost' || (outcome && this.#runs.size === 0)) break;
      if (this.#working > 0) await this.#advanceWhileWorking(real);
      else if (!(await this.#clock.advanceToNext())) await real.sleep(1);
    }
    cancelTimer();
    if (isLate)
      return failed(
        'TIMEOUT',
        `the dry run was stopped after ${MAX_REAL_MS / 1000} s: it does too much, or a script does not end`,
      );
    return outcome as ExecutionOutcome;
  }

  #begin(ensemble: LoadedEnsemble, execution: NewExecution, how: RunOptions, within?: string): InterpretedRun {
    const journal = new DryJournal(this.#dryRunOf(ensemble, execution, within));
    this.#root ??= journal;
    this.#places.set(execution.id, within);
    const { compiled, checkOutput } = ensemble;
    const run = runEnsemble(compiled, execution, journal, this.#ports, how, checkOutput);
    this.#runs.set(execution.id, run);
    void run.outcome.then(() => this.#runs.delete(execution.id));
    this.#stopped?.(run);
    return run;
  }

  #dryRunOf(ensemble: LoadedEnsemble, execution: NewExecution, within: string | undefined): DryRun {
    const { states } = this.#dependencies;
    const isRoot = this.#root === undefined;
    const { name } = ensemble.compiled;
    const made = (key: string): DryAnswer => {
      const place = `${name} ${placeOf(key)}`;
      const turn = this.#turns.get(place) ?? 0;
      this.#turns.set(place, turn + 1);
      return answerOf(typeAt(ensemble, key), nameAt(key), turn);
    };
    const recorded = isRoot ? this.#recorded : undefined;
    return {
      ...{ clock: this.#clock, plan: this.plan, within },
      answer(key, agent) {
        const known = recorded?.find(key, agent);
        if (!known) return made(key);
        return { output: cloneJson(known.output), error: known.error, from: 'execution', unknown: [] };
      },
      payload(key, signal, mayEnd) {
        const known = recorded?.find(`${key}.wait`, signal)?.output as
          | { signal: string | null; payload: Json }
          | undefined;
        if (!known) return made(key);
        if (known.signal === null) return mayEnd ? undefined : made(key);
        return { output: cloneJson(known.payload), from: 'execution', unknown: [] };
      },
      runs: (operation) => this.#options.runScripts === true && !OUTSIDE.has(operation),
      state: {
        get: async () => {
          if (this.#states.has(name)) return this.#states.get(name);
          const stored = await this.#work(() => states.read(execution.ensemble));
          if (!this.#states.has(name)) this.#states.set(name, stored?.value as JsonObject | undefined);
          return this.#states.get(name);
        },
        set: (state) => void this.#states.set(name, state),
      },
      begin: () => this.#beginWork(),
    };
  }

  #toDryDefinition(ensemble: LoadedEnsemble): LoadedDefinition {
    return {
      definition: ensemble.compiled.stored,
      durability: 'none',
      run: (execution) => {
        const { parentId = '', key = '' } = execution.trigger;
        const within = this.#places.get(parentId);
        const { ensemble: name, input } = execution;
        const planned = this.plan.add({ key, kind: 'ensemble', name, within });
        this.plan.put(planned, 'input', input);
        const known = within === undefined && this.#recorded.find(`${key}.ensemble`, '')?.output;
        const run = known
          ? endedRun(known)
          : this.#begin(ensemble, execution, NEW, within === undefined ? key : `${within}/${key}`);
        if (known) planned.from = 'execution';
        void run.outcome.then(({ output, error }) => {
          if (error) planned.error = error;
          else this.plan.put(planned, 'output', output);
        });
        return run;
      },
    };
  }

  /** Begins children in place of an engine. */
  #engine(): AttachedEngine {
    const engine: Pick<AttachedEngine, 'runRecords' | 'begin' | 'cancel'> = {
      runRecords: {
        executions: { get: async () => undefined, countDescendants: async () => this.#children },
        signals: { list: async () => [] },
      },
      begin: (execution, loaded) => {
        this.#children += 1;
        const run = loaded.run(execution, undefined as never, NEW);
        const { id, ensemble } = execution;
        return { finished: run.outcome.then((outcome) => ({ ...outcome, id, ensemble }) as unknown as Execution) };
      },
      cancel: async (id) => {
        this.#runs.get(id)?.stop('cancelled');
        return undefined;
      },
    };
    return engine as AttachedEngine;
  }

  /** Real work: meanwhile, time passes as it does outside. */
  async #work<R>(work: () => MaybePromise<R>): Promise<R> {
    const end = this.#beginWork();
    try {
      return await work();
    } finally {
      end();
    }
  }

  #beginWork(): () => void {
    this.#working += 1;
    let ended = false;
    return () => {
      if (ended) return;
      ended = true;
      this.#working -= 1;
      this.#onWorked?.();
    };
  }

  /** Waits for real work, at most until the next timer. With scripts, the clock has then advanced by what has passed. */
  async #advanceWhileWorking(real: Clock): Promise<void> {
    const begun = real.monotonic();
    await new Promise<void>((resolve) => {
      const { runScripts } = this.#options;
      const nextIn = (runScripts && this.#clock.nextIn) || MAX_REAL_MS;
      const cancel = real.setTimer(Math.min(nextIn, MAX_REAL_MS), resolve);
      this.#onWorked = () => {
        cancel();
        resolve();
      };
    });
    this.#onWorked = undefined;
    // Without scripts, it is work of this library, such as reading a component.
    if (this.#options.runScripts) await this.#clock.advance(Math.max(0, real.monotonic() - begun));
  }
}

const NEW: RunOptions = { resumed: false, cancelled: false };
