/** One run at work: what its steps share, and how they stop. */

import type { CompiledEnsemble } from '../definition/compiled-ensemble.ts';
import type { NameSlot } from '../definition/names.ts';
import { Scope, type ScopeRun } from '../definition/scope.ts';
import type { Json, JsonObject } from '../json.ts';
import type { EventData, EventKind } from '../model/event.ts';
import type { ExecutionError } from '../model/execution.ts';
import type { NewExecution } from '../model/stored-execution.ts';
import type { Clock } from '../ports/clock.ts';
import type { Journal } from '../ports/journal.ts';
import type { Logger } from '../ports/logger.ts';
import type { Halt } from './halt.ts';
import type { MaskText } from './mask-secrets.ts';

/** What the interpreter is given beside the definition and the journal. */
export interface RunPorts {
  readonly clock: Clock;
  readonly logger: Logger;
  /** `env` and `secrets` together. */
  readonly env: Readonly<Record<string, string>>;
  readonly mask: MaskText;
  /** Tells observers; undefined when nobody listens to this run, so that no event is built for nobody. */
  readonly emit: (<K extends EventKind>(event: K, data: EventData[K]) => void) | undefined;
}

/** What all levels of one run share. */
export class Run implements ScopeRun {
  readonly compiled: CompiledEnsemble;
  readonly accepted: NewExecution;
  readonly journal: Journal;
  readonly ports: RunPorts;
  lastCommitAt: number;
  /** Failures that nothing has handled yet, at all levels together. */
  unhandled: number;

  constructor(compiled: CompiledEnsemble, accepted: NewExecution, journal: Journal, ports: RunPorts) {
    this.compiled = compiled;
    this.accepted = accepted;
    this.journal = journal;
    this.ports = ports;
    this.lastCommitAt = accepted.createdAt;
    this.unhandled = 0;
  }

  get seed(): string {
    return this.accepted.seed;
  }

  get input(): Json {
    return this.accepted.input;
  }

  get env(): Readonly<Record<string, string>> {
    return this.ports.env;
  }

  get headers(): JsonObject {
    return EMPTY;
  }

  get trigger(): JsonObject {
    return this.accepted.trigger as unknown as JsonObject;
  }

  get execution(): JsonObject {
    const { id, ensemble, version, createdAt } = this.accepted;
    return { id, ensemble, version, startedAt: createdAt };
  }
}

const EMPTY: JsonObject = Object.freeze({});

/** A failure that waits for a guard. */
export interface Failure {
  readonly slot: NameSlot;
  /** The router that led to the agent: a guard on it handles the failure too. */
  readonly router: NameSlot | undefined;
  readonly error: ExecutionError;
}

/** One level of the flow at work: its names, its failures, and what stops it. */
export class RunScope extends Scope {
  declare readonly run: Run;
  declare readonly parent: RunScope | undefined;
  readonly halt: Halt;
  failures: Failure[] | undefined;
  /** The prompt that a route of this level chose, for the next `think` that names none. */
  prompt: string | undefined;

  constructor(
    run: Run,
    parent: RunScope | undefined,
    slots: number,
    halt: Halt,
    keyPrefix = '',
    item: Json = null,
    index = 0,
  ) {
    super(run, parent, slots, keyPrefix, item, index);
    this.halt = halt;
    this.failures = undefined;
    this.prompt = undefined;
  }

  /** The prompt for a `think` at this level: chosen here, or further out. */
  findPrompt(): string | undefined {
    for (let level: RunScope | undefined = this; level; level = level.parent) {
      if (level.prompt !== undefined) return level.prompt;
    }
    return undefined;
  }

  /** It was used: the next `think` needs another. */
  takePrompt(): void {
    for (let level: RunScope | undefined = this; level; level = level.parent) {
      if (level.prompt === undefined) continue;
      level.prompt = undefined;
      return;
    }
  }

  fail(failure: Failure): void {
    if (!this.failures) this.failures = [];
    this.failures.push(failure);
    this.run.unhandled += 1;
  }

  /** Marks the failure of a name as handled, if there is one. */
  handle(slot: NameSlot): void {
    const open = this.failures;
    if (!open) return;
    this.failures = open.filter((failure) => failure.slot !== slot && failure.router !== slot);
    this.run.unhandled -= open.length - this.failures.length;
  }
}
