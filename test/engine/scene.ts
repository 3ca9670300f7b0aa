/** A flow under test: builders for its steps, scripts that record what ran, and a manual clock. */

import type { Execution } from '../../src/engine/execution/execution.ts';
import { createTestOrchestrator, type TestOrchestratorOptions } from '../../src/entries/testing.ts';
import type { Script } from '../../src/operations/code/script.ts';
import type { ExecutionHandle } from '../../src/orchestrator/runs/handles.ts';
import type { ExecuteOptions } from '../../src/orchestrator/runs/starts/execute-options.ts';

type Fields = Readonly<Record<string, unknown>>;

/** A step that runs a script. */
export function code(agent: string, script: string, fields: Fields = {}): Fields {
  const { config, ...rest } = fields;
  return { agent, operation: 'code', config: { script, ...(config as object | undefined) }, ...rest };
}

/** Returns `config.give`, or its own name. */
export const ok = (agent: string, fields: Fields = {}): Fields => code(agent, 'ok', fields);
/** Throws `boom in NAME`. */
export const boom = (agent: string, fields: Fields = {}): Fields => code(agent, 'boom', fields);
/** Returns its input. */
export const echo = (agent: string, input?: unknown, fields: Fields = {}): Fields =>
  code(agent, 'echo', input === undefined ? fields : { input, ...fields });

export const when = (condition: string): Fields => ({ condition: `\${${condition}}` });

export interface Scene {
  /** The names of the agents, in the order in which their attempts began. */
  readonly ran: string[];
  readonly orchestrator: ReturnType<typeof createTestOrchestrator>;
  readonly clock: ReturnType<typeof createTestOrchestrator>['clock'];
  run(input?: unknown, options?: ExecuteOptions): Promise<Execution<unknown>>;
  start(input?: unknown, options?: ExecuteOptions): Promise<ExecutionHandle>;
}

/** @param definition - a flow, or the fields of an ensemble named `e` */
export function scene(definition: readonly Fields[] | Fields, options: TestOrchestratorOptions = {}): Scene {
  const ran: string[] = [];
  const recorded =
    (script: Script): Script =>
    (context) => {
      ran.push(context.execution.agent);
      return script(context);
    };
  const scripts: Record<string, Script> = {
    ok: ({ config, execution }) => ('give' in config ? config.give : execution.agent),
    boom: ({ execution }) => {
      throw new Error(`boom in ${execution.agent}`);
    },
    echo: ({ input }) => input,
    ...options.scripts,
  };
  const ensemble = Array.isArray(definition)
    ? { name: 'e', flow: definition }
    : { name: 'e', ...(definition as Fields) };
  const orchestrator = createTestOrchestrator({
    // Errors as most stores have them, so that tests can compare them.
    errors: { stack: false },
    ...options,
    ensembles: [ensemble, ...(options.ensembles ?? [])],
    scripts: Object.fromEntries(Object.entries(scripts).map(([name, script]) => [name, recorded(script)])),
  });
  return {
    ran,
    orchestrator,
    clock: orchestrator.clock,
    run: (input, runOptions) => orchestrator.execute('e', input, runOptions),
    start: (input, runOptions) => orchestrator.start('e', input, runOptions),
  };
}

/** The children of an execution, the oldest first; in any order when they started at the same instant. */
export async function childrenOf({ orchestrator }: Scene, parentId: string): Promise<readonly Execution<unknown>[]> {
  const { executions } = await orchestrator.executions.list({ parentId });
  return [...executions].reverse();
}

/** A promise and the functions that settle it. */
export function deferred<T = unknown>(): {
  promise: Promise<T>;
  resolve: (value: T) => void;
  reject: (reason: unknown) => void;
} {
  let resolve!: (value: T) => void;
  let reject!: (reason: unknown) => void;
  const promise = new Promise<T>((give, refuse) => {
    resolve = give;
    reject = refuse;
  });
  return { promise, resolve, reject };
}

/** Lets everything that is ready run. */
export async function turns(count = 3): Promise<void> {
  for (let i = 0; i < count; i++) await new Promise((resolve) => setImmediate(resolve));
}
