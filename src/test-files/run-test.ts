/** Runs one test of a test file in virtual time. */

import { type ManualClock, manualClock } from '../adapters/clock/manual-clock.ts';
import type { EnsembleSource } from '../authoring/define.ts';
import { isOrchestratorError, messageOf } from '../engine/base/errors.ts';
import { equalJson, type Json, type JsonObject } from '../engine/base/json/json.ts';
import { readPages } from '../engine/base/read-pages.ts';
import { toMs } from '../engine/base/time/duration.ts';
import type { ExecutionStep } from '../engine/ensemble/execution-step.ts';
import { definitionPathOf } from '../engine/ensemble/flow-places.ts';
import type { AgentResult, Execution } from '../engine/execution/execution.ts';
import type { AnyOperation, OperationContext } from '../engine/operation/operation.port.ts';
import { compileHost, type Orchestrator } from '../orchestrator/create-orchestrator.ts';
import { loadEnsembles } from '../orchestrator/definitions/load-definitions.ts';
import { functionsOf } from '../orchestrator/options/functions-of.ts';
import type { OrchestratorOptions } from '../orchestrator/options/options.ts';
import { STAND_IN } from '../orchestrator/options/register-operations.ts';
import { routeMatcher, type StubHttp } from '../testing-kit/stub-http.ts';
import { compare, differs, type ExpectScope, show, type TestDifference } from './compare.ts';
import { runningElsewhere, type StandIns, sealed, standIns } from './stand-ins.ts';
import { type Expectation, type FlowTest, instantOf } from './test-form.ts';

/** A step of a definition that ran. */
export interface RanStep {
  readonly ensemble: string;
  /** Its position in the flow, such as `flow[2].then[0]`: the same for each item and each round. */
  readonly key: string;
}

export interface TestResult {
  readonly name: string;
  /** Empty: the test has passed. */
  readonly differences: readonly TestDifference[];
  /** What else is wrong, such as an agent without an answer. */
  readonly problems: readonly string[];
  /** The agents that ran, in their order. */
  readonly went: readonly Pick<AgentResult, 'name' | 'key' | 'status' | 'error'>[];
  readonly ran: readonly RanStep[];
  /** Real time, in milliseconds. */
  readonly took: number;
}

/** The way that an execution took, in words. */
export function describeWay({ went }: TestResult): string {
  const steps = went.map(
    ({ name, key, error }) => `${name} (${key}${error ? `, ${error.code}: ${error.message}` : ''})`,
  );
  return `went: ${steps.join(' → ') || 'no agent ran'}`;
}

type TestOptions = OrchestratorOptions & { readonly clock: ManualClock; readonly http: StubHttp };

/** @param create - creates a test orchestrator */
export type CreateForTest = (options: TestOptions) => Orchestrator;

/** How long a test may take in real time: a script may never end. */
const MAX_REAL_MS = 10_000;

/**
 * The tests of one ensemble. It is compiled once for all tests with the same variables.
 *
 * @param sources - the ensemble, and those that it starts
 */
export function createRunner(
  ensemble: string,
  sources: readonly EnsembleSource[],
  given: OrchestratorOptions,
  create: CreateForTest,
): (test: FlowTest) => Promise<TestResult> {
  const options = { ...sealed(given), ensembles: sources };
  const loaded = new Map<string, ReturnType<typeof loadEnsembles>>();
  /** The operations of the test that runs. */
  const current = new Map<string, (context: OperationContext) => unknown>();
  const load = (variables: Pick<OrchestratorOptions, 'env' | 'secrets'>) => {
    const operation = runningElsewhere((name, context) => current.get(name)?.(context));
    const host = compileHost({ ...options, ...variables, [STAND_IN]: { operation } } as OrchestratorOptions);
    // Nothing is sent, so no sender is needed.
    return loadEnsembles(sources, { ...host, lenient: true });
  };
  return async (test) => {
    const begun = performance.now();
    const clock = manualClock(test.now === undefined ? {} : { now: instantOf(test.now) });
    const stood = standIns(test, clock);
    const variables = variablesOf(given, test);
    const key = JSON.stringify(test.env ?? {});
    const ensembles = loaded.get(key) ?? load(variables);
    loaded.set(key, ensembles);
    const operation = (one: AnyOperation) => {
      current.set(one.name, (context) => stood.run(one, context));
      return one;
    };
    const orchestrator = create({
      ...{ ...options, ...variables, clock, http: stood.http, schedules: false, logger: false },
      ...(test.components && { components: undefined }),
      [STAND_IN]: { operation, ensembles },
    } as TestOptions);
    try {
      const problems: string[] = [];
      if (test.components) await orchestrator.components.ensure(test.components);
      const untaken = sendSignals(test, { orchestrator, clock, problems });
      const record = await withFetch(stood.http, () => execute(orchestrator, ensemble, test.input, problems));
      const about = { orchestrator, stood, options, clock };
      return {
        name: test.name,
        differences: record ? await differencesOf(test.expect ?? {}, record, about) : [],
        problems: [...stood.unanswered, ...problems, ...untaken()],
        went: record?.agents ?? [],
        ran: await stepsThatRan(orchestrator),
        took: performance.now() - begun,
      };
    } finally {
      await orchestrator.close({ grace: 0 });
    }
  };
}

/** Of the execution that a test starts. */
const ID = 'test';

/** A variable of the test that the app keeps as a secret stays one. */
function variablesOf({ env, secrets = {} }: OrchestratorOptions, test: FlowTest) {
  const given = Object.entries(test.env ?? {});
  const isSecret = ([name]: readonly [string, string]) => Object.hasOwn(secrets, name);
  return {
    env: { ...env, ...Object.fromEntries(given.filter((one) => !isSecret(one))) },
    secrets: { ...secrets, ...Object.fromEntries(given.filter(isSecret)) },
  };
}

type Ended = Pick<Execution<unknown>, 'status' | 'output' | 'error' | 'agents' | 'duration' | 'input'>;

type ExecuteByName = (name: string, input: Json, options: { readonly id: string }) => Promise<Ended>;

/** @returns undefined if the execution did not end */
async function execute(
  orchestrator: Orchestrator,
  ensemble: string,
  input: Json | undefined,
  problems: string[],
): Promise<Ended | undefined> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const tooLong = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => {
      problems.push(`the execution has not ended after ${MAX_REAL_MS / 1000} s of real time: a step does not end`);
      resolve(undefined);
    }, MAX_REAL_MS);
  });
  try {
    const ended = (orchestrator.execute as ExecuteByName)(ensemble, input ?? {}, { id: ID });
    return await Promise.race([ended, tooLong]);
  } catch (thrown) {
    // A start that is refused has no record.
    if (isOrchestratorError(thrown)) return refused(thrown.code, thrown.message, input);
    problems.push(messageOf(thrown));
    return undefined;
  } finally {
    clearTimeout(timer);
  }
}

function refused(code: string, message: string, input: Json = {}): Ended {
  return {
    status: 'failed',
    input,
    output: null,
    error: { code, message },
    agents: [],
    duration: 0,
  } as unknown as Ended;
}

interface Sending {
  readonly orchestrator: Orchestrator;
  readonly clock: ManualClock;
  readonly problems: string[];
}

/**
 * Sends each signal at its time. Without one, it is sent at the start, and the execution keeps it until a step waits for it.
 * @returns a function that says which signals no step has taken. One whose time came after the end was not sent
 */
function sendSignals({ signals = [] }: FlowTest, { orchestrator, clock, problems }: Sending): () => string[] {
  // Those of the start count as sent, also if nothing waited for a moment.
  const sent = signals.filter(({ after = 0 }) => toMs(after) === 0).map(({ name }) => name);
  const taken: string[] = [];
  orchestrator.on('signal.taken', ({ data }) => taken.push(data.signal));
  for (const { name, after = 0, payload } of signals)
    clock.setTimer(toMs(after), () => {
      orchestrator.executions.signal(ID, name, payload).then(
        () => {
          if (toMs(after) > 0) sent.push(name);
        },
        (thrown: unknown) => {
          problems.push(`signal \`${name}\`: ${messageOf(thrown)}`);
          // It is said once.
          taken.push(name);
        },
      );
    });
  const count = (all: readonly string[], name: string) => all.filter((one) => one === name).length;
  return () =>
    [...new Set(sent)]
      .filter((name) => count(sent, name) > count(taken, name))
      .map((name) => `signal \`${name}\` was sent, and no step that ran waited for it`);
}

/** Until the work has ended, `fetch` of a script answers from the test too. */
async function withFetch<R>(http: StubHttp, work: () => Promise<R>): Promise<R> {
  const { fetch } = globalThis;
  globalThis.fetch = async (target, init) => {
    const { method, url, headers, body } = new Request(target, init);
    const sent = body === null ? undefined : await new Response(body).text();
    const given = await http.send({
      method,
      url,
      headers: Object.fromEntries(headers),
      ...(sent !== undefined && { body: sent }),
    });
    const empty = [204, 205, 304].includes(given.status);
    return new Response(empty ? null : (given.body as BodyInit), { status: given.status, headers: given.headers });
  };
  try {
    return await work();
  } finally {
    globalThis.fetch = fetch;
  }
}

interface About {
  readonly orchestrator: Orchestrator;
  readonly stood: StandIns;
  readonly options: OrchestratorOptions;
  readonly clock: ManualClock;
}

async function differencesOf(expect: Expectation, record: Ended, about: About): Promise<TestDifference[]> {
  const { agents, error, duration } = record;
  const output = (record.output ?? null) as Json;
  const steps: Record<string, Json> = {};
  for (const { name, status, output: given, error: failure, attempts } of agents)
    steps[name] = { status, output: given, error: (failure ?? null) as Json, attempts };
  const scope: ExpectScope = {
    ...{ input: record.input as Json, output, error: (error ?? null) as unknown as Json, steps },
    functions: functionsOf(about.options),
    now: () => about.clock.now(),
  };
  const found: TestDifference[] = [];
  const status = expect.status ?? (expect.error === undefined ? 'completed' : undefined);
  if (status !== undefined && status !== record.status)
    found.push(
      differs(
        ['status'],
        error && status === 'completed' ? `completed (it failed: ${error.message})` : status,
        record.status,
      ),
    );
  // What a failed execution lacks is known already.
  if (expect.output !== undefined && found.length === 0)
    found.push(...compare(expect.output, output, ['output'], scope));
  if (expect.error !== undefined) found.push(...compareError(expect.error, scope));
  if (expect.duration !== undefined) found.push(...compareDuration(expect.duration, duration ?? 0, scope));
  found.push(...compareSteps(expect, agents, scope), ...compareCalls(expect.calls ?? {}, about.stood, scope));
  if (expect.events) found.push(...(await compareEvents(expect.events, about.orchestrator, scope)));
  return found;
}

function compareError(expected: Json, scope: ExpectScope): TestDifference[] {
  const { error } = scope;
  if (error === null) return [differs(['error'], show(expected), null)];
  const { message, ...rest } = (typeof expected === 'string' ? { code: expected } : expected) as JsonObject;
  const was = (error as JsonObject).message as string;
  const isPart = typeof message !== 'string' || message.includes('${') ? undefined : was.includes(message);
  const wrong =
    isPart === undefined ? compare({ ...(message !== undefined && { message }) }, error, ['error'], scope) : [];
  if (isPart === false) wrong.push(differs(['error', 'message'], `text with ${show(message as Json)}`, was));
  return [...compare(rest, error, ['error'], scope), ...wrong];
}

function compareDuration(expected: Json, was: number, scope: ExpectScope): TestDifference[] {
  const isText = typeof expected === 'string' && !expected.includes('${');
  return compare(isText ? toMs(expected) : expected, was, ['duration'], scope);
}

function compareSteps(
  { steps, notRun = [] }: Expectation,
  agents: Ended['agents'],
  scope: ExpectScope,
): TestDifference[] {
  const ran = agents.map(({ name }) => name);
  const found = notRun
    .filter((name) => ran.includes(name))
    .map((name) => ({ path: `notRun: ${name}`, expected: 'does not run', was: 'ran' }));
  if (Array.isArray(steps))
    return equalJson(steps, ran)
      ? found
      : [...found, { path: 'steps', expected: steps.join(', '), was: ran.join(', ') }];
  for (const [name, expected] of Object.entries((steps ?? {}) as JsonObject)) {
    const was = scope.steps[name] ?? null;
    found.push(
      ...(was === null
        ? [{ path: `steps.${name}`, expected: 'runs', was: 'did not run' }]
        : compare(expected, was, ['steps', name], scope)),
    );
  }
  return found;
}

function compareCalls(
  expected: NonNullable<Expectation['calls']>,
  { calls, http }: StandIns,
  scope: ExpectScope,
): TestDifference[] {
  return Object.entries(expected).flatMap(([name, wanted]) => {
    const made = name.includes('://') ? requestsTo(name, http) : (calls.get(name) ?? []);
    if (typeof wanted !== 'number') return compare(wanted as Json, made, ['calls', name], scope);
    return made.length === wanted ? [] : [differs(['calls', name], String(wanted), made.length)];
  });
}

function requestsTo(route: string, { calls }: StubHttp): Json[] {
  return calls.filter(routeMatcher(route)).map(({ method, url, headers, json = null, body }) => ({
    ...{ method, url, headers: { ...headers } as JsonObject, json },
    body: typeof body === 'string' ? body : null,
  }));
}

async function compareEvents(
  expected: readonly Json[],
  { executions }: Orchestrator,
  scope: ExpectScope,
): Promise<TestDifference[]> {
  const all: JsonObject[] = [];
  for await (const { event } of executions.events(ID)) all.push(event as unknown as JsonObject);
  let from = 0;
  for (const [i, wanted] of expected.entries()) {
    const form = typeof wanted === 'string' ? { event: wanted } : wanted;
    const at = all.findIndex((one, index) => index >= from && compare(form, one, [], scope).length === 0);
    if (at < 0)
      return [{ path: `events[${i}]`, expected: show(wanted), was: all.map(({ event }) => event).join(', ') }];
    from = at + 1;
  }
  return [];
}

/** The routes that an execution has taken. They have no results of their own. */
async function routesOf(
  { steps }: Orchestrator['executions'],
  id: string,
): Promise<readonly { readonly key: string }[]> {
  const { items } = await readPages<'steps', ExecutionStep>('steps', (page) => steps(id, { ...page, maxOutput: 0 }));
  return items.filter(({ kind }) => kind === 'route');
}

/** The steps that ran, of the ensemble and of those that it started. */
async function stepsThatRan({ executions }: Orchestrator): Promise<RanStep[]> {
  const ran = new Map<string, RanStep>();
  for (const { id, ensemble } of (await executions.list({ limit: 100 })).executions)
    for (const { key } of [...(await executions.history(id)).steps, ...(await routesOf(executions, id))]) {
      const place = definitionPathOf(key);
      ran.set(`${ensemble} ${place}`, { ensemble, key: place });
    }
  return [...ran.values()];
}
