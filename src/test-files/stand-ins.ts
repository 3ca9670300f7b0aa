/** What runs in place of operations in a test: the answers of the test, and a refusal of everything that would leave the process. */

import { type ErrorCode, OrchestratorError } from '../engine/base/errors.ts';
import { cloneJson, type Json } from '../engine/base/json/json.ts';
import { toMs } from '../engine/base/time/duration.ts';
import type { Clock } from '../engine/host/clock.port.ts';
import type { AnyOperation, OperationContext } from '../engine/operation/operation.port.ts';
import type { OrchestratorOptions } from '../orchestrator/options/options.ts';
import { mapMembers } from '../testing-kit/map-members.ts';
import { type StubCall, type StubHttp, stubHttp } from '../testing-kit/stub-http.ts';
import type { FlowTest, TestAnswer } from './test-form.ts';

export interface StandIns {
  readonly http: StubHttp;
  /** What the agents were called with, by agent. */
  readonly calls: ReadonlyMap<string, readonly Json[]>;
  /** Calls that the test has no answer for, in words. */
  readonly unanswered: ReadonlySet<string>;
  /** Runs an attempt of an operation, as the test says. */
  run(operation: AnyOperation, context: OperationContext): unknown;
}

/** The operations that reach the world only through HTTP, and those that stay in the process. */
const RUN_THEMSELVES = ['api', 'think', 'tools', 'code'];

export function standIns({ agents = {}, http = [] }: FlowTest, clock: Clock): StandIns {
  const calls = new Map<string, Json[]>();
  const unanswered = new Set<string>();
  const client = stubHttp({ '*': refuse });
  for (const { request, reply } of http) client.on(request, reply);

  function refuse({ method, url }: StubCall): never {
    const call = `${method.toUpperCase()} ${url.split('?')[0]}`;
    const missing = `${call} has no answer: add \`http: [{ request: '${call}', reply: { json: ... } }]\`, or an answer of its agent`;
    unanswered.add(missing);
    throw new OrchestratorError('INVALID_REQUEST', missing);
  }

  const run = (operation: AnyOperation, context: OperationContext): unknown => {
    const { agent } = context.execution;
    const before = calls.get(agent) ?? [];
    calls.set(agent, [...before, { input: cloneJson(context.input), config: cloneJson(context.config) }]);
    const answers = Object.hasOwn(agents, agent) ? agents[agent] : undefined;
    if (answers !== undefined) {
      const list = Array.isArray(answers) ? (answers as readonly TestAnswer[]) : [answers as TestAnswer];
      return give(list[Math.min(before.length, list.length - 1)] as TestAnswer, clock);
    }
    if (RUN_THEMSELVES.includes(operation.name)) return operation.run(context);
    const missing = `agent \`${agent}\` (${operation.name}) has no answer: add \`agents: { ${agent}: { output: ... } }\``;
    unanswered.add(missing);
    throw new OrchestratorError('INVALID_REQUEST', missing);
  };

  return {
    http: client,
    calls,
    unanswered,
    run,
  };
}

/** As of an operation whose call failed: another attempt may succeed. */
const RETRYABLE = ['AGENT_FAILED', 'TIMEOUT'];

function give({ output = null, error, delay }: TestAnswer, clock: Clock): unknown {
  const answer = () => {
    if (error === undefined) return cloneJson(output);
    const given = typeof error === 'string' ? { message: error } : error;
    const { code = 'AGENT_FAILED', message = 'failed', retryable = RETRYABLE.includes(code) } = given;
    throw new OrchestratorError(code as ErrorCode, message, { retryable });
  };
  if (delay === undefined) return answer();
  return new Promise((resolve, reject) => {
    clock.setTimer(toMs(delay), () => {
      try {
        resolve(answer());
      } catch (thrown) {
        reject(thrown);
      }
    });
  });
}

/** The options of an app without what reaches outside: each part says its name when it is used. */
export function sealed(options: OrchestratorOptions): OrchestratorOptions {
  const seal = <T extends object>(part: T, what: string): T =>
    mapMembers(part, (value, key) => {
      if (typeof value !== 'function') return value;
      if (key === 'ready' || key === 'close') return () => undefined;
      if (key === 'check') return value.bind(part);
      return () => {
        throw new OrchestratorError('INVALID_REQUEST', `${what} is not used in a test: its agent needs an answer`);
      };
    });
  const each = <T extends object>(parts: Readonly<Record<string, T>> | undefined, what: string) =>
    parts && Object.fromEntries(Object.entries(parts).map(([name, part]) => [name, seal(part, `${what} \`${name}\``)]));
  const { storage: _storage, engine: _engine, telemetry: _telemetry, ...kept } = options;
  const { mail, sms, bindings, models, pdf } = kept;
  const own = Object.entries(models ?? {}).map(
    ([name, model]) => [name, 'generate' in model ? seal(model, `model provider \`${name}\``) : model] as const,
  );
  return {
    ...kept,
    ...(mail && { mail: each(mail, 'mail sender') }),
    ...(sms && { sms: each(sms, 'SMS sender') }),
    ...(bindings && { bindings: each(bindings as Record<string, object>, 'binding') as typeof bindings }),
    ...(models && { models: Object.fromEntries(own) }),
    ...(pdf && { pdf: seal(pdf, 'the renderer of PDFs') }),
  };
}

/** Operations whose attempts run elsewhere, so that definitions are compiled once for many tests. */
export function runningElsewhere(run: (name: string, context: OperationContext) => unknown) {
  return (operation: AnyOperation): AnyOperation =>
    mapMembers(operation, (value, key) => {
      if (key === 'run') return (context: OperationContext) => run(operation.name, context);
      // A schema may be a function with members.
      const isSchema = key === 'config' || key === 'input' || key === 'output';
      return typeof value === 'function' && !isSchema ? value.bind(operation) : value;
    });
}
