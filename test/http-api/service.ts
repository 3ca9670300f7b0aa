/** The service under test: a few ensembles, one shared agent, a manual clock, tokens, and a handler. */

import type { TokenScope } from '../../src/engine/access/token.ts';
import type { HttpHandler } from '../../src/engine/host/host.port.ts';
import { type ManualClock, manualClock } from '../../src/entries/testing.ts';
import { createApiHandler } from '../../src/http-handlers/create-api-handler.ts';
import type { HandlerOptions } from '../../src/http-handlers/handler-options.ts';
import { createOrchestrator, type Orchestrator } from '../../src/orchestrator/create-orchestrator.ts';
import type { OrchestratorOptions } from '../../src/orchestrator/options/options.ts';
import { checked } from './check-response.ts';

const code = (agent: string, script: string) => ({ agent, operation: 'code', config: { script }, input: '${input}' });

export const ENSEMBLES = [
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
  /** The log entries, oldest first. */
  readonly log: {
    readonly level: string;
    readonly fields: Record<string, unknown>;
    readonly message?: string | undefined;
  }[];
  /** Resolves when the script `wait` begins the next time. */
  begun(): Promise<void>;
  /** Ends every `wait` that has begun. */
  release(): void;
  /** Creates a token with these scopes. @returns its header */
  bearer(...scopes: TokenScope[]): Promise<{ authorization: string }>;
}

export function createService(options: HandlerOptions = {}, more: OrchestratorOptions = {}): Service {
  const clock = manualClock();
  const log: Service['log'] = [];
  const logAt = (level: string) => (fields: object, message?: string) =>
    void log.push({ level, fields: fields as Record<string, unknown>, message });
  const logger = { debug: logAt('debug'), info: logAt('info'), warn: logAt('warn'), error: logAt('error') };
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
    handler: checked(createApiHandler(orchestrator, { clock, logger, ...options })),
    clock,
    log,
    begun: () => new Promise((resolve) => onBegin.push(resolve)),
    release() {
      for (const end of waiting.splice(0)) end();
    },
    async bearer(...scopes) {
      const { token } = await orchestrator.tokens.create({ name: 'test', scopes, plan: 'enterprise' });
      return { authorization: `Bearer ${token}` };
    },
  };
}

/** A POST of JSON. */
export function post(value: unknown, headers: Record<string, string> = {}): RequestInit {
  const body = typeof value === 'string' ? value : JSON.stringify(value);
  return { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body };
}

export interface JsonResponse {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: the tests read any part of a body
  readonly body: any;
  readonly headers: Headers;
}

/** The parts of a response with a JSON body. */
export async function readResponse(promise: Response | Promise<Response>): Promise<JsonResponse> {
  const response = await promise;
  const text = await response.text();
  return { status: response.status, body: text === '' ? undefined : JSON.parse(text), headers: response.headers };
}
