/** Runs an execution dry: no operation runs, a wait takes no time, and nothing but the record with its plan is stored. */

import { manualClock } from '../../adapters/clock/manual-clock.ts';
import { type ErrorCode, messageOf, OrchestratorError } from '../../engine/base/errors.ts';
import { cloneJson, type Json, type JsonObject } from '../../engine/base/json/json.ts';
import { jsonTextBytes } from '../../engine/base/json/measure-json.ts';
import type { MaybePromise } from '../../engine/base/maybe-promise.ts';
import { sampleOf } from '../../engine/definition/types/values-of-type.ts';
import { unknownParts } from '../../engine/definition/types/type-text.ts';
import type { Type } from '../../engine/definition/types/type.ts';
import { placeOf } from '../../engine/ensemble/flow-places.ts';
import { type DryRunOptions, type Execution, PLAN_KEY, type PlannedStep } from '../../engine/execution/execution.ts';
import type {
  AttachedEngine,
  ExecutionOutcome,
  InterpretedRun,
  LoadedDefinition,
} from '../../engine/execution/execution-engine.port.ts';
import type { IdSource } from '../../engine/execution/id.ts';
import type { Journal } from '../../engine/execution/journal.port.ts';
import type { NewExecution, StepRecord } from '../../engine/execution/stored-execution.ts';
import type { Clock } from '../../engine/host/clock.port.ts';
import type { Masking } from '../../engine/host/masking.port.ts';
import type { RunPorts } from '../../engine/interpreter/run.ts';
import { runEnsemble } from '../../engine/interpreter/run-ensemble.ts';
import { Turns } from '../../engine/interpreter/turns.ts';
import { type DryAnswer, DryJournal, type DryRun, type NewPlannedStep } from '../../engine/running/dry-journal.ts';
import type { RecordReader, Storage } from '../../engine/storage/storage.port.ts';
import type { LoadedEnsemble } from '../definitions/load-definitions.ts';
import { createChildren } from '../runs/children.ts';
import { readRecords } from '../runs/read-records.ts';
import type { Find } from '../runs/with-current-definition.ts';

/** A `while` whose answers are made up may never end. */
const MAX_ROUNDS = 3;
/** A dry run that takes longer in real time is stopped: a script does not end. */
const MAX_REAL_MS = 60_000;
const MAX_PLANNED = 1_000;
const MAX_PLAN_BYTES = 1024 * 1024;
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
  run(ensemble: LoadedEnsemble, execution: NewExecution, journal: Journal): InterpretedRun;
  /**
   * The input of a dry run: the given one, or that of the execution of `like`.
   * @throws NOT_FOUND, INVALID_REQUEST if that is of another ensemble
   */
  inputOf(options: DryRunOptions, ensemble: string, given: unknown): Promise<unknown>;
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
    run(ensemble, execution, journal) {
      const world = new DryWorld(dependencies, execution);
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
      const plan = shorten(world.plan);
      await journal.decide(PLAN_KEY, () => plan as unknown as Json, { name: '', at: execution.createdAt });
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
  readonly plan: NewPlannedStep[] = [];
  readonly #dependencies: DryRunDependencies;
  readonly #options: DryRunOptions;
  readonly #clock;
  readonly #startedAt: number;
  readonly #ports: RunPorts;
  /** Where the steps of an execution are, by its id: see `PlannedStep.within`. */
  readonly #places = new Map<string, string | undefined>();
  readonly #runs = new Set<InterpretedRun>();
  /** What the execution of `like` has recorded, by key. */
  readonly #recorded = new Map<string, StepRecord>();
  /** How often the steps at a place have run. */
  readonly #turns = new Map<string, number>();
  #root: DryJournal | undefined;
  #children = 0;
  /** How many pieces of real work have begun and not ended. */
  #working = 0;
  #onWorked: (() => void) | undefined;
  #stopped: ((run: InterpretedRun) => void) | undefined;

  constructor(dependencies: DryRunDependencies, { createdAt, trigger }: NewExecution) {
    this.#dependencies = dependencies;
    this.#options = trigger.dryRun ?? {};
    this.#clock = manualClock({ now: createdAt });
    this.#startedAt = createdAt;
    const { ports, ids, find } = dependencies;
    const { env, mask, resolveComponent } = ports;
    const clock = this.#clock;
    const children = createChildren({
      ...{ clock, ids, tracing: undefined, forget() {} },
      newId: (_ensemble, now) => ids.id('exec_', now),
      find: (name) => this.#work(() => find(name)),
      engine: () => this.#engine(),
      toLoadedDefinition: (ensemble) => this.#toDryDefinition(ensemble),
    });
    this.#ports = {
      ...{ clock, children, env, mask, turns: new Turns(clock), keepsStacks: false, emit: undefined },
      logger: this.#options.runScripts ? ports.logger : undefined,
      maxRounds: this.#options.like === undefined ? MAX_ROUNDS : undefined,
      resolveComponent: resolveComponent && ((...given) => this.#work(() => resolveComponent(...given))),
    };
  }

  get results(): readonly StepRecord[] {
    return this.#root?.records ?? [];
  }

  stop(by: (run: InterpretedRun) => void): void {
    this.#stopped = by;
    for (const run of this.#runs) by(run);
  }

  /** Reads what the execution of `like` has recorded. @returns why it can't be read */
  async read(): Promise<string | undefined> {
    const { like } = this.#options;
    if (like === undefined) return undefined;
    const { records, turns } = this.#dependencies;
    if (!(await records().executions.getStatus(like))) return `\`like\`: there is no execution ${like}`;
    for await (const record of readRecords(records(), turns, like)) this.#recorded.set(record.key, record);
    return undefined;
  }

  async drive(ensemble: LoadedEnsemble, execution: NewExecution, real: Clock): Promise<ExecutionOutcome> {
    const { dryRun: _dry, ...trigger } = execution.trigger;
    let outcome: ExecutionOutcome | undefined;
    void this.#begin(ensemble, { ...execution, trigger }).outcome.then((ended) => {
      outcome = ended;
    });
    const until = real.monotonic() + MAX_REAL_MS;
    while (outcome === undefined || this.#runs.size > 0) {
      await this.#clock.advance(0);
      if (outcome?.status === 'lost' || (outcome && this.#runs.size === 0)) break;
      if (real.monotonic() > until) {
        this.stop((run) => run.abandon());
        return failed('TIMEOUT', `the dry run was stopped after ${MAX_REAL_MS / 1000} s: a script does not end`);
      }
      if (this.#working > 0) await this.#untilWorked(real);
      else if (!(await this.#clock.advanceToNext())) await real.sleep(1);
    }
    return outcome as ExecutionOutcome;
  }

  #begin(ensemble: LoadedEnsemble, execution: NewExecution, within?: string): InterpretedRun {
    const journal = new DryJournal(this.#dryRunOf(ensemble, execution, within));
    this.#root ??= journal;
    this.#places.set(execution.id, within);
    const { compiled, checkOutput } = ensemble;
    const begins = { resumed: false, cancelled: false };
    const run = runEnsemble(compiled, execution, journal, this.#ports, begins, checkOutput);
    this.#runs.add(run);
    void run.outcome.then(() => this.#runs.delete(run));
    this.#stopped?.(run);
    return run;
  }

  #dryRunOf(ensemble: LoadedEnsemble, execution: NewExecution, within: string | undefined): DryRun {
    const { json, states } = this.#dependencies;
    const isRoot = this.#root === undefined;
    const typeAt = (key: string) => ensemble.answers?.().get(key.replace(/\.(?:foreach|while)\[\d+\]/g, ''));
    const nameAt = (key: string) => /\.?(\w+)$/.exec(key)?.[1] ?? 'value';
    const made = (key: string): DryAnswer => {
      const place = `${ensemble.compiled.name} ${placeOf(key)}`;
      const turn = this.#turns.get(place) ?? 0;
      this.#turns.set(place, turn + 1);
      return answerOf(typeAt(key), nameAt(key), turn);
    };
    const recordedAt = (key: string) => (isRoot ? this.#recorded.get(key) : undefined);
    return {
      ...{ clock: this.#clock, startedAt: this.#startedAt, plan: this.plan, within },
      answer(key) {
        const known = recordedAt(key);
        if (!known) return made(key);
        return { output: cloneJson(known.output), error: known.error, from: 'execution', unknown: [] };
      },
      payload(key) {
        const known = recordedAt(`${key}.wait`)?.output as { signal: string | null; payload: Json } | undefined;
        if (!known) return made(key);
        if (known.signal === null) return undefined;
        return { output: cloneJson(known.payload), from: 'execution', unknown: [] };
      },
      runs: (operation) => this.#options.runScripts === true && !OUTSIDE.has(operation),
      mask: (value) => JSON.parse(json(value) as string),
      state: () => this.#work(async () => (await states.read(execution.ensemble))?.value as JsonObject | undefined),
      begin: () => this.#beginWork(),
    };
  }

  #toDryDefinition(ensemble: LoadedEnsemble): LoadedDefinition {
    return {
      definition: ensemble.compiled.stored,
      durability: 'none',
      run: (execution) => {
        const { parentId = '', key = '' } = execution.trigger;
        const outer = this.#places.get(parentId);
        const at = this.#clock.now() - this.#startedAt;
        const { ensemble: name, input } = execution;
        const shown = JSON.parse(this.#dependencies.json(input) as string) as Json;
        const planned: NewPlannedStep = { key, kind: 'ensemble', name, at, input: shown };
        if (outer !== undefined) planned.within = outer;
        this.plan.push(planned);
        const run = this.#begin(ensemble, execution, outer === undefined ? key : `${outer}/${key}`);
        void run.outcome.then(({ output, error }) => Object.assign(planned, error ? { error } : { output }));
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
        const run = loaded.run(execution, undefined as never, { resumed: false, cancelled: false });
        const { id, ensemble } = execution;
        return { finished: run.outcome.then((outcome) => ({ ...outcome, id, ensemble }) as unknown as Execution) };
      },
      cancel: async () => undefined,
    };
    return engine as AttachedEngine;
  }

  /** Real work, while which the clock stands. */
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

  async #untilWorked(real: Clock): Promise<void> {
    await new Promise<void>((resolve) => {
      const cancel = real.setTimer(1_000, resolve);
      this.#onWorked = () => {
        cancel();
        resolve();
      };
    });
    this.#onWorked = undefined;
  }
}

function answerOf(type: Type | undefined, name: string, turn: number): DryAnswer {
  if (!type) return { output: null, from: 'types', unknown: ['output'] };
  const unknown = unknownParts(type).map((part) => `output${part}`);
  return { output: sampleOf(type, name, turn), from: 'types', unknown };
}

/** The plan as it is stored: the first 1,000 steps, with at most 1 MiB of values. */
function shorten(plan: readonly PlannedStep[]): readonly PlannedStep[] {
  let bytes = 0;
  return plan.slice(0, MAX_PLANNED).map((step) => {
    bytes += jsonTextBytes(step as unknown as Json, MAX_PLAN_BYTES);
    if (bytes <= MAX_PLAN_BYTES) return step;
    const { input: _input, config: _config, output: _output, ...short } = step;
    return { ...short, omitted: true };
  });
}
