/** One process of a world: an orchestrator, what it stands on, and what it can be made to suffer. */

import type { ExecutionEngine } from '../../../engine/ports/execution-engine.ts';
import type { Storage } from '../../../engine/ports/storage.ts';
import type { EmbeddedEngineOptions } from '../../engine/engine-options.ts';
import type { ManualClock } from '../manual-clock.ts';
import type { Ledger } from './ledger.ts';
import { createLife, type Fate, type Life } from './life.ts';
import { labelOf, suiteScripts } from './scripts.ts';
import type { CreateSubject, Subject, SuiteScript } from './subject.ts';

/** What the suite tests. */
export interface Subjects {
  readonly createSubject: CreateSubject;
  readonly engine: (options: EmbeddedEngineOptions) => ExecutionEngine;
}

export interface ProcessOptions {
  readonly ensembles?: readonly object[];
  readonly agents?: readonly object[];
  /** Beside those of the suite. `undefined` takes one of those away. */
  readonly scripts?: Readonly<Record<string, SuiteScript | undefined>>;
  readonly engine?: EmbeddedEngineOptions;
  readonly retention?: number;
  readonly fate?: Fate;
  /** Changes what it finds in the storage. */
  readonly tamper?: (storage: Storage) => Storage;
}

export interface Process {
  readonly subject: Subject;
  readonly life: Life;
  /** What it warned of or logged as an error. */
  readonly warnings: readonly string[];
  /** Ends it as `kill -9` does. */
  kill(): void;
}

interface ProcessParts extends Subjects {
  readonly options: ProcessOptions;
  /** The storage, as this process opened it. */
  readonly handle: Storage;
  readonly clock: ManualClock;
  readonly ledger: Ledger;
  /** Counted from 1. */
  readonly number: number;
  onDeath(life: Life): void;
}

/** A short lease: what is left behind is soon taken up. */
export const LEASE_MS = 1500;
export const SWEEP_MS = 500;

export function createProcess(parts: ProcessParts): Process {
  const { options, handle, ledger, number } = parts;
  const life: Life = createLife({
    fate: options.fate,
    onCommit: (batch, results) => ledger.noteCommit(number, batch, results),
    onDeath: () => parts.onDeath(life),
  });
  const clock = life.clock(parts.clock);
  const scripts: Record<string, SuiteScript> = {};
  for (const [name, script] of Object.entries({ ...suiteScripts(clock), ...options.scripts })) {
    if (!script) continue;
    scripts[name] = life.call((context) => {
      const { idempotencyKey, input, execution } = context;
      ledger.note({ process: number, executionId: execution.id, label: labelOf(context), idempotencyKey, input });
      return script(context);
    });
  }
  const warnings: string[] = [];
  const warn = (_fields: object, message = '') => {
    warnings.push(message);
  };
  const subject = parts.createSubject({
    ensembles: options.ensembles ?? [],
    agents: options.agents ?? [],
    scripts,
    storage: life.storage(options.tamper ? options.tamper(handle) : handle),
    clock,
    engine: parts.engine({ leaseMs: LEASE_MS, sweepMs: SWEEP_MS, ...options.engine }),
    logger: { debug() {}, info() {}, warn, error: warn },
    ...(options.retention !== undefined && { retention: options.retention }),
  });
  return { subject, life, warnings, kill: life.die };
}
