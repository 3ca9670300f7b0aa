/** `ensemble webhook`: lists the webhooks of a project, and calls one as its sender would. */

import { messageOf } from '../../engine/base/errors.ts';
import { suggestName } from '../../engine/base/suggest-name.ts';
import { BODY_TYPES } from '../../engine/webhook/webhook.ts';
import { canonicalWebhookPath } from '../../engine/webhook/webhook-path.ts';
import { requireProject } from '../project/find-target.ts';
import { printIssue } from '../project/print-issues.ts';
import { readEnv, readText } from '../project/read-input.ts';
import type { ServiceHost } from '../service/service.ts';
import * as start from '../start.ts';
import { CliError, wrongUsage } from '../terminal/cli-error.ts';
import type { Output } from '../terminal/output.ts';
import { type Column, formatTable, terminalWidth } from '../terminal/table.ts';
import { count, oneLine, printJson } from '../terminal/text.ts';

export interface WebhookListOptions {
  readonly dir?: string;
  readonly json?: boolean;
}

export interface WebhookSendOptions extends WebhookListOptions {
  readonly body?: string;
  readonly method?: string;
  readonly type?: string;
  readonly header: readonly string[];
  readonly url?: string;
  readonly env: readonly string[];
}

const COLUMNS: readonly Column[] = [
  { title: 'PATH', shrinkTo: 16 },
  { title: 'METHODS' },
  { title: 'AUTH' },
  { title: 'ENSEMBLE', shrinkTo: 8 },
  { title: 'SENDS', shrinkTo: 6 },
  { title: 'WARNINGS', shrinkTo: 12 },
];
const DEFAULT_URL = 'http://127.0.0.1:3000';
const TIMEOUT_MS = 60_000;

export async function listWebhooks(options: WebhookListOptions, output: Output, host: ServiceHost): Promise<number> {
  const directory = await requireProject(host.cwd, options.dir);
  const { options: project } = await start.openToDraw(directory);
  const webhooks = start.webhooksOf(project, true).map(({ webhook, ensemble, warnings }) => {
    const { path, methods, access, delivery, isAsync } = webhook;
    const auth = access.type === 'signature' ? `signature, ${access.scheme}` : access.type;
    return { path, methods, auth, ensemble, async: isAsync, ...(delivery && { signal: delivery.signal }), warnings };
  });
  if (options.json) {
    output.print(`${printJson({ webhooks })}\n`);
    return 0;
  }
  if (webhooks.length === 0) {
    output.say('no ensemble of this project has a trigger of type webhook\n');
    return 0;
  }
  const rows = webhooks.map(({ path, methods, auth, ensemble, signal, warnings }) => [
    ...[path, methods.join(', '), auth, ensemble, signal === undefined ? 'a start' : `signal ${signal}`],
    warnings.join('; '),
  ]);
  output.print(formatTable(COLUMNS, rows, terminalWidth(host.process)));
  return 0;
}

export async function sendWebhook(
  target: string,
  options: WebhookSendOptions,
  output: Output,
  host: ServiceHost,
): Promise<number> {
  const { cwd, process } = host;
  const directory = await requireProject(cwd, options.dir);
  const { options: project, files } = await start.openToRun(directory, { env: readEnv(options.env, process.env) });
  const issues = start.shownFrom(cwd, directory, files).flatMap((file) => file.issues);
  for (const issue of issues) output.say(`${printIssue(issue, output.colors)}\n\n`);
  if (issues.length > 0) return 1;
  const { webhook } = findWebhook(start.webhooksOf(project), target, options.method?.toUpperCase());
  const takesBody = (one: string) => one !== 'GET' && one !== 'HEAD';
  const [first = 'POST'] = options.body === undefined ? webhook.methods : webhook.methods.filter(takesBody);
  const method = (options.method ?? first).toUpperCase();
  const hasBody = takesBody(method);
  if (!hasBody && options.body !== undefined) throw wrongUsage(`a request with ${method} has no body`);
  const { body: file } = options;
  const written = file === undefined ? '{}' : await readText(file, cwd, process.stdin, `--body ${file}`);
  const body = hasBody ? written : '';
  const contentType = options.type ?? BODY_TYPES[webhook.accept[0] ?? 'json'];
  const base = (options.url ?? process.env.ENSEMBLE_URL ?? DEFAULT_URL).replace(/\/$/, '');
  const signed = await start.signAsSender(webhook.access, {
    // As the server reads it: a signature may cover the address.
    ...{ url: new URL(base + target).href, body, contentType, now: Date.now(), id: `msg_${crypto.randomUUID()}` },
  });
  const headers = new Headers({ ...(hasBody && { 'Content-Type': contentType }), ...signed?.headers });
  for (const [name, value] of readHeaders(options.header)) headers.set(name, value);
  if (!signed && !headers.has('authorization'))
    throw wrongUsage(
      "only the issuer makes tokens for this trigger: pass one with --header 'Authorization: Bearer ...'",
    );
  const answer = await send(signed?.url ?? base + target, { method, headers, ...(hasBody && { body }) });
  if (options.json) output.print(`${printJson({ status: answer.status, body: answer.json ?? answer.text })}\n`);
  else {
    const mark = answer.ok ? output.colors.green('✓') : output.colors.red('✗');
    output.say(`${mark} ${answer.status} ${oneLine(answer.statusText)}\n`);
    output.print(`${answer.json === undefined ? oneLine(answer.text) : printJson(answer.json)}\n`);
  }
  return answer.ok ? 0 : 1;
}

/** @param method - undefined: that of the first trigger with the path */
function findWebhook(
  webhooks: readonly start.ProjectWebhook[],
  target: string,
  method: string | undefined,
): start.ProjectWebhook {
  const [path = ''] = target.split('?', 1);
  const canonical = canonicalWebhookPath(path);
  const there = webhooks.filter(({ webhook }) => webhook.path === canonical);
  const found = there.find(({ webhook }) => method === undefined || webhook.methods.includes(method)) ?? there[0];
  if (found) return found;
  const paths = webhooks.map(({ webhook }) => webhook.path);
  const near = suggestName(path, paths);
  const hint =
    near === undefined ? `; the ${count(paths.length, 'path')}: ${paths.join(', ')}` : `; did you mean ${near}?`;
  throw new CliError(`no trigger of this project has the path ${path}${paths.length === 0 ? '' : hint}`);
}

function readHeaders(given: readonly string[]): readonly (readonly [string, string])[] {
  return given.map((header) => {
    const at = header.indexOf(':');
    if (at < 1) throw wrongUsage(`--header must have the form 'Name: value', not ${JSON.stringify(header)}`);
    return [header.slice(0, at).trim(), header.slice(at + 1).trim()];
  });
}

async function send(url: string, init: RequestInit) {
  let response: Response;
  try {
    response = await fetch(url, { ...init, redirect: 'manual', signal: AbortSignal.timeout(TIMEOUT_MS) });
  } catch (error) {
    const { cause } = error as { readonly cause?: unknown };
    throw new CliError(`${url} does not answer: ${messageOf(cause ?? error)}; is \`ensemble serve\` running there?`);
  }
  const text = await response.text();
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    json = undefined;
  }
  return { ok: response.ok, status: response.status, statusText: response.statusText, text, json };
}
