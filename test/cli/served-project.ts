/** Projects served by the built command in a separate process, each on a port of its own. */

import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { onTestFinished } from 'vitest';
import { makeFolder, type Started, startEnsemble } from './cli-process.ts';

export const GREET = {
  'ensembles/greet.yaml': `name: greet
inputs: { who: { type: string, required: true } }
flow:
  - { agent: hello, operation: code, config: { script: hello } }
outputs: { text: "\${hello.output}" }
`,
  'scripts/hello.mjs': 'export default ({ input }) => `Hello ${input.who}`;\n',
};

/** An ensemble whose agent waits for the test: its script calls the gate of the input, which responds when the test opens it. */
export const GATED = {
  'ensembles/gated.yaml': `name: gated
flow:
  - { agent: before, operation: code, config: { script: pass } }
  - { agent: pass, operation: code, config: { script: gated } }
outputs: { passed: "\${pass.output}" }
`,
  'scripts/pass.mjs': 'export default () => 1;\n',
  'scripts/gated.mjs': 'export default async ({ input }) => (await fetch(input.gate)).json();\n',
};

export interface Served extends Started {
  readonly cwd: string;
  /** Such as `http://127.0.0.1:40001`. */
  readonly url: string;
  /** The first admin token; empty if the store had tokens. */
  readonly token: string;
  /** The text that was printed at the start. */
  readonly printed: string;
  api(path: string, body?: unknown, token?: string): Promise<Response>;
}

export function makeProject(files: Readonly<Record<string, string>> = GREET): string {
  return makeFolder(files);
}

/** Starts `ensemble serve` and waits until it listens. */
export async function serveProject(
  cwd: string,
  args: readonly string[] = [],
  env: Readonly<Record<string, string>> = {},
): Promise<Served> {
  const started = startEnsemble(['serve', '--port', '0', ...args], { cwd, env });
  onTestFinished(() => void started.child.kill('SIGKILL'));
  const printed = await waitForStdout(started, /(tokens {5}\d+;.*|-d '.*')\n/);
  const url = /listening on (\S+)/.exec(printed)?.[1] as string;
  const token = /^ {2}(sk-\S+)$/m.exec(printed)?.[1] ?? '';
  const api = (path: string, body?: unknown, bearer = token) =>
    fetch(`${url}/api/v1${path}`, {
      headers: { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' },
      ...(body !== undefined && { method: 'POST', body: JSON.stringify(body) }),
    });
  return { ...started, cwd, url, token, printed, api };
}

/** Resolves with all of stdout when it matches. Rejects when the process ends before that. */
export function waitForStdout({ child, ended }: Pick<Started, 'child' | 'ended'>, pattern: RegExp): Promise<string> {
  return new Promise((resolve, reject) => {
    let stdout = '';
    child.stdout?.on('data', (chunk) => {
      stdout += chunk;
      if (pattern.test(stdout)) resolve(stdout);
    });
    void ended.then(({ code, stderr }) =>
      reject(new Error(`ended with ${code} before it printed ${pattern}:\n${stderr}`)),
    );
  });
}

export interface Gate {
  readonly url: string;
  /** Resolves when a script waits at the gate. */
  readonly reached: Promise<void>;
  /** Lets every script continue, now and later. */
  open(): void;
}

export async function startGate(): Promise<Gate> {
  let reach: () => void = () => {};
  let open: () => void = () => {};
  const reached = new Promise<void>((resolve) => {
    reach = resolve;
  });
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  const url = await listen(
    createServer((_request, response) => {
      reach();
      void opened.then(() => response.end('"passed"'));
    }),
  );
  return { url, reached, open };
}

/** Listens on loopback until the test has ended. */
export async function listen(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** The request of the printed curl command. @param token - the value of the variable in the command */
export function readCurlLine(printed: string, token?: string): { readonly url: string; readonly init: RequestInit } {
  const [, url, authorization, type, body] =
    /^ *curl (\S+) -H ['"]Authorization: ([^'"]+)['"] -H 'Content-Type: ([^']+)' -d '([^']+)'$/m.exec(printed) ?? [];
  if (!url || !authorization || !type || !body) throw new Error(`there is no curl line in:\n${printed}`);
  return {
    url,
    init: {
      method: 'POST',
      headers: { authorization: authorization.replace('$ENSEMBLE_TOKEN', token ?? ''), 'content-type': type },
      body,
    },
  };
}

/** Polls until a value is there, for what another process does. Fails after 15 s. */
export async function until<T>(look: () => Promise<T | undefined | false>): Promise<T> {
  const deadline = performance.now() + 15_000;
  for (;;) {
    const found = await look();
    if (found !== undefined && found !== false) return found;
    if (performance.now() > deadline) throw new Error(`no value within 15 s: ${look}`);
    await wait(25);
  }
}

export interface StoredRecord {
  readonly id: string;
  readonly status: string;
  readonly output: unknown;
  readonly createdAt: number;
  readonly startedAt?: number;
  readonly retryOf?: string;
  readonly agents: readonly { readonly name: string; readonly attempts: number }[];
}

/** Waits until an execution has a status. @param token - default: the first token of the server */
export function recordOf(served: Served, id: string, status: string, token?: string): Promise<StoredRecord> {
  return until(async () => {
    const record = (await (await served.api(`/executions/${id}`, undefined, token)).json()) as StoredRecord;
    return record.status === status && record;
  });
}

/** Starts an execution without waiting for its end. @returns its id */
export async function begin(served: Served, name: string, input: object = {}): Promise<string> {
  const response = await served.api(`/execute/ensemble/${name}`, { input, async: true });
  return ((await response.json()) as { executionId: string }).executionId;
}

/** Ends a server with SIGTERM. */
export async function stop(served: Served): Promise<void> {
  served.child.kill('SIGTERM');
  await served.ended;
}
