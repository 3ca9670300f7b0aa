/** One simulated process of a world: an orchestrator with its own engine, clock and scripts, and the faults of that process. */

import type { Fault, ProcessControl } from '../../../testing-kit/processes/process-control.ts';
import type { EngineProcess, EngineProcessOptions } from './engine-world.ts';
import type { History } from './history.ts';
import { partsOperation } from './parts-operation.ts';
import { labelOf, suiteScripts } from './scripts.ts';
import type { CreateSubject, Subject, SuiteScript } from './subject.ts';

/** @typeParam O - the options of the engine in this process */
export interface ProcessOptions<O = EngineProcessOptions> {
  readonly ensembles?: readonly object[] | undefined;
  readonly agents?: readonly object[] | undefined;
  /** In addition to the suite's own scripts. `undefined` removes one of those. */
  readonly scripts?: Readonly<Record<string, SuiteScript | undefined>> | undefined;
  readonly engine?: O | undefined;
  readonly retention?: number | undefined;
  readonly fault?: Fault | undefined;
}

export interface Process {
  readonly subject: Subject;
  readonly control: ProcessControl;
  /** Messages that it logged as a warning or an error. */
  readonly warnings: readonly string[];
  /** Ends it as `kill -9` does. */
  kill(): void;
}

interface ProcessDependencies {
  readonly createSubject: CreateSubject;
  readonly options: ProcessOptions;
  readonly control: ProcessControl;
  readonly opened: EngineProcess;
  readonly history: History;
  /** Counted from 1. */
  readonly number: number;
}

export function createProcess({
  createSubject,
  options,
  control,
  opened,
  history,
  number,
}: ProcessDependencies): Process {
  const scripts: Record<string, SuiteScript> = {};
  for (const [name, script] of Object.entries({ ...suiteScripts(control.clock), ...options.scripts })) {
    if (!script) continue;
    scripts[name] = control.script((context) => {
      const { idempotencyKey, input, execution } = context;
      history.addEffect({ process: number, executionId: execution.id, label: labelOf(context), idempotencyKey, input });
      return script(context);
    });
  }
  const warnings: string[] = [];
  const warn = (_fields: object, message = '') => {
    warnings.push(message);
  };
  const subject = createSubject({
    ensembles: options.ensembles ?? [],
    agents: options.agents ?? [],
    scripts,
    operations: [partsOperation(control, history, number)],
    storage: opened.storage,
    clock: control.clock,
    engine: opened.engine,
    logger: { debug() {}, info() {}, warn, error: warn },
    ...(options.retention !== undefined && { retention: options.retention }),
  });
  return { subject, control, warnings, kill: control.kill };
}
