/** Starts yaml-language-server, the server behind the YAML support of most editors, and speaks its protocol with it. */

import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { fileURLToPath, pathToFileURL } from 'node:url';

const SERVER = fileURLToPath(import.meta.resolve('yaml-language-server/bin/yaml-language-server'));
const NO_NETWORK = fileURLToPath(new URL('./no-network.cjs', import.meta.url));

/** The settings of an editor, without the catalogue of schemas on the web. */
const SETTINGS = { yaml: { schemaStore: { enable: false }, completion: true, hover: true, validate: true } };

export interface Diagnostic {
  /** From 1, as editors show it. */
  readonly line: number;
  /** What is underlined, as far as its first line. */
  readonly marked: string;
  readonly message: string;
}

export interface Completion {
  readonly label: string;
  readonly documentation: string;
}

export interface LanguageServer {
  /** What is wrong with a text, shown as a file of `ensembles/`. */
  diagnose(text: string): Promise<readonly Diagnostic[]>;
  /** What the editor offers at the `|>` of the text. */
  complete(text: string): Promise<readonly Completion[]>;
  /** What the editor shows for the word at the `|>` of the text, as Markdown. */
  hover(text: string): Promise<string>;
  /** What the server tried to look up or to connect to. */
  network(): readonly string[];
  stop(): void;
}

/** @param folder - a project, absolute */
export async function startLanguageServer(folder: string): Promise<LanguageServer> {
  const child = spawn(process.execPath, ['--require', NO_NETWORK, SERVER, '--stdio'], {
    env: { PATH: process.env.PATH } as NodeJS.ProcessEnv,
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const connection = connect(child);
  const uriOf = (path: string) => pathToFileURL(join(folder, path)).href;
  await connection.request('initialize', {
    processId: process.pid,
    rootUri: uriOf('.'),
    workspaceFolders: [{ uri: uriOf('.'), name: 'project' }],
    capabilities: {
      textDocument: { completion: { completionItem: { snippetSupport: true, documentationFormat: ['markdown'] } } },
      workspace: { configuration: true, workspaceFolders: true },
    },
  });
  connection.notify('initialized', {});
  let shown = 0;
  // A new name each time: what the server reports for it belongs to this text.
  const show = (text: string): string => {
    shown += 1;
    const uri = uriOf(`ensembles/shown-${shown}.yaml`);
    connection.notify('textDocument/didOpen', { textDocument: { uri, languageId: 'yaml', version: 1, text } });
    return uri;
  };
  const atCursor = (text: string) => {
    const [before = '', after = ''] = text.split('|>');
    const lines = before.split('\n');
    const position = { line: lines.length - 1, character: (lines.at(-1) as string).length };
    return { textDocument: { uri: show(before + after) }, position };
  };
  return {
    async diagnose(text) {
      const found = await connection.diagnosticsOf(show(text));
      const lines = text.split('\n');
      return found.map(({ range: { start, end }, message }) => ({
        line: start.line + 1,
        marked: (lines[start.line] as string).slice(start.character, end.line > start.line ? undefined : end.character),
        message,
      }));
    },
    async complete(text) {
      type Item = { readonly label: string; readonly documentation?: string | { readonly value: string } };
      const { items } = await connection.request<{ items: Item[] }>('textDocument/completion', atCursor(text));
      return items.map(({ label, documentation = '' }) => ({
        label,
        documentation: typeof documentation === 'string' ? documentation : documentation.value,
      }));
    },
    async hover(text) {
      type Hover = { readonly contents: { readonly value: string } } | null;
      return (await connection.request<Hover>('textDocument/hover', atCursor(text)))?.contents.value ?? '';
    },
    network: connection.network,
    stop: () => child.kill(),
  };
}

interface Message {
  readonly id?: number;
  readonly method?: string;
  // biome-ignore lint/suspicious/noExplicitAny: each method has its own shape
  readonly params?: any;
  readonly result?: unknown;
  readonly error?: { readonly message: string };
}

interface RawDiagnostic {
  readonly range: Readonly<Record<'start' | 'end', { readonly line: number; readonly character: number }>>;
  readonly message: string;
}

/** JSON-RPC over the server's streams: each message follows a header with its length in bytes. */
function connect(child: ChildProcessByStdio<Writable, Readable, Readable>) {
  const answers = new Map<number, (message: Message) => void>();
  const reports = new Map<string, (found: readonly RawDiagnostic[]) => void>();
  let input = Buffer.alloc(0);
  let errors = '';
  let requests = 0;
  const send = (message: Message) => {
    const body = JSON.stringify({ jsonrpc: '2.0', ...message });
    child.stdin.write(`Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
  };
  const settingsOf = ({ section = '' }: { readonly section?: string }) => SETTINGS[section as 'yaml'] ?? null;
  const receive = (message: Message) => {
    const { id, method, params } = message;
    if (method === undefined) answers.get(id as number)?.(message);
    else if (method === 'textDocument/publishDiagnostics') reports.get(params.uri)?.(params.diagnostics);
    else if (id !== undefined) {
      send({ id, result: method === 'workspace/configuration' ? params.items.map(settingsOf) : null });
    }
  };
  child.stderr.on('data', (chunk) => {
    errors += chunk;
  });
  child.stdout.on('data', (chunk: Buffer) => {
    input = Buffer.concat([input, chunk]);
    for (;;) {
      const end = input.indexOf('\r\n\r\n');
      const length = Number(/Content-Length: (\d+)/.exec(input.toString('latin1', 0, Math.max(end, 0)))?.[1]);
      if (end === -1 || input.length < end + 4 + length) return;
      const body = input.toString('utf8', end + 4, end + 4 + length);
      input = input.subarray(end + 4 + length);
      receive(JSON.parse(body));
    }
  });
  return {
    network: () => errors.split('\n').filter((line) => line.startsWith('NETWORK')),
    notify: (method: string, params: unknown) => send({ method, params }),
    request: <T>(method: string, params: unknown): Promise<T> =>
      new Promise((resolve, reject) => {
        requests += 1;
        answers.set(requests, ({ result, error }) => (error ? reject(new Error(error.message)) : resolve(result as T)));
        send({ id: requests, method, params });
      }),
    diagnosticsOf: (uri: string): Promise<readonly RawDiagnostic[]> =>
      new Promise((resolve) => {
        reports.set(uri, resolve);
      }),
  };
}
