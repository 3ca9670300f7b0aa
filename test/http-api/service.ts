/** The service under test: a few ensembles and one shared agent, a clock of the test's own, tokens, and a handler. */

import type { Scope } from '../../src/engine/model/token.ts';
import type { HttpHandler } from '../../src/engine/ports/host.ts';
import { createApiHandler } from '../../src/http-handlers/create-api-handler.ts';
import type { HandlerOptions } from '../../src/http-handlers/handler-options.ts';
import type { OrchestratorOptions } from '../../src/options.ts';
import { createOrchestrator, type Orchestrator } from '../../src/orchestrator.ts';
import { type ManualClock, manualClock } from '../../src/testing.ts';

const code = (agent: string, script: string) => ({ agent, operation: 'code', config: { script }, input: '${input}' });

const ENSEMBLES = [
  {
    name: 'greet',
    description: 'Says hello',
    inputs: { who: { type: 'string', required: true } },
    flow: [code('hello', 'hello')],
    outputs: { text: '${hello.output}' },
  },
  { name: 'echo', flow: [code('say', 'echo')], outputs: { said: '${say.output}' } },
  {
    name: 'parent',
    flow: [
      { ensemble: 'echo', input: { from: 'parent' } },
      { ensemble: 'failing', continueOnError: true },
    ],
  },
  { name: 'failing', flow: [code('charge', 'boom')] },
  { name: 'slow', flow: [code('wait', 'wait')], outputs: { done: '${wait.output}' } },
  { name: 'hasty', timeout: 5_000, flow: [code('wait', 'wait')] },
];

export interface Service {
  readonly orchestrator: Orchestrator;
  readonly handler: HttpHandler;
  readonly clock: ManualClock;
  /** What was logged, oldest first. */
  readonly log: {
    readonly level: string;
    readonly fields: Record<string, unknown>;
    readonly message?: string | undefined;
  }[];
  /** Resolves when the script `wait` has begun once more. */
  begun(): Promise<void>;
  /** Lets every `wait` that has begun end. */
  release(): void;
  /** The header of a token that holds these scopes. */
  bearer(...scopes: Scope[]): Promise<{ authorization: string }>;
}

export function createService(options: HandlerOptions = {}, more: OrchestratorOptions = {}): Service {
  const clock = manualClock();
  const log: Service['log'] = [];
  const note = (level: string) => (fields: object, message?: string) =>
    void log.push({ level, fields: fields as Record<string, unknown>, message });
  const logger = { debug: note('debug'), info: note('info'), warn: note('warn'), error: note('error') };
  const waiting: (() => void)[] = [];
  const onBegin: (() => void)[] = [];
  const orchestrator = createOrchestrator({
    ensembles: ENSEMBLES,
    agents: [{ name: 'double', operation: 'code', config: { script: 'double' } }],
    clock,
    ...more,
    scripts: {
      hello: ({ input }) => `Hello ${(input as { who: string }).who}`,
      echo: ({ input }) => input,
      double: ({ input }) => (input as { n: number }).n * 2,
      boom: () => {
        throw new Error('the card was refused');
      },
      wait: ({ signal }) =>
        new Promise((resolve, reject) => {
          waiting.push(() => resolve(true));
          signal.addEventListener('abort', () => reject(signal.reason));
          for (const begin of onBegin.splice(0)) begin();
        }),
      ...more.scripts,
    },
  }) as unknown as Orchestrator;
  return {
    orchestrator,
    handler: createApiHandler(orchestrator, { clock, logger, ...options }),
    clock,
    log,
    begun: () => new Promise((resolve) => onBegin.push(resolve)),
    release() {
      for (const end of waiting.splice(0)) end();
    },
    async bearer(...scopes) {
      const { token } = await orchestrator.tokens.create({ name: 'test', scopes });
      return { authorization: `Bearer ${token}` };
    },
  };
}

/** A POST of JSON. */
export function post(value: unknown, headers: Record<string, string> = {}): RequestInit {
  const body = typeof value === 'string' ? value : JSON.stringify(value);
  return { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body };
}

export interface Told {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: what an answer holds is what the tests look into
  readonly body: any;
  readonly headers: Headers;
}

/** Status and body of an answer whose body is JSON. */
export async function told(response: Response | Promise<Response>): Promise<Told> {
  const answer = await response;
  const text = await answer.text();
  return { status: answer.status, body: text === '' ? undefined : JSON.parse(text), headers: answer.headers };
}
