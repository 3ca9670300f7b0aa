/** `/signals/:token`: the pages of a link of `signalUrl()`. Opening the page changes nothing; its form sends the signal. */

import { OrchestratorError } from '../../engine/base/errors.ts';
import type { JsonObject } from '../../engine/base/json/json.ts';
import { isAskedPlainly } from '../../engine/signal/form-field.ts';
import type { SignalLinkState } from '../../engine/signal/signal-page.ts';
import { BODY_TYPES } from '../../engine/webhook/webhook.ts';
import type { SignalLinkStatus } from '../../orchestrator/signals/signal-links.ts';
import type { HttpCall } from '../call.ts';
import type { Reply } from '../reply/reply.ts';
import { decodeText, readBytes } from '../request/read-json.ts';
import type { Route } from '../router.ts';

/** The link is the credential, so these routes need no token. */
export const LINK_ROUTES: readonly Route[] = [
  { method: 'GET', path: '/signals/:token', scope: 'public', run: showLink },
  { method: 'POST', path: '/signals/:token', scope: 'public', run: followLink },
];

const HEADERS = {
  // No script, no style, nothing from another origin, no frame. Only the form works, and it posts to its own origin.
  'content-security-policy': "default-src 'none'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
  'referrer-policy': 'no-referrer',
  'x-robots-tag': 'noindex, nofollow',
} as const;

const PAGES: Readonly<
  Record<SignalLinkState, { readonly status: number; readonly title: string; readonly text: string }>
> = {
  open: { status: 200, title: 'Please confirm', text: 'Press the button to send your answer.' },
  given: { status: 200, title: 'Thank you', text: 'Your answer was saved. You can close this page.' },
  answered: { status: 409, title: 'Already answered', text: 'An answer was saved before. Nothing has changed.' },
  over: { status: 410, title: 'Too late', text: 'This answer is no longer needed. Nothing has changed.' },
  unknown: { status: 404, title: 'No such link', text: 'Please check that you have the whole address.' },
  invalid: { status: 422, title: 'Please check your answer', text: 'Nothing was sent yet.' },
};
/** The largest form. */
const MAX_FORM_BYTES = 64 * 1024;

/** Mail scanners request this page too, so it changes nothing. */
async function showLink(call: HttpCall): Promise<Reply> {
  return pageOf(call, await linksOf(call).read(call.params.token ?? ''));
}

/** Of a link without fields, the body is ignored. */
async function followLink(call: HttpCall): Promise<Reply> {
  const { token = '' } = call.params;
  const links = linksOf(call);
  const isForm = call.request.hasBody && call.request.header('content-type')?.toLowerCase().startsWith(BODY_TYPES.form);
  if (!isForm || !(await links.read(token)).page?.fields) return pageOf(call, await links.use(token));
  const form = new URLSearchParams(decodeText(await readBytes(call, MAX_FORM_BYTES)));
  const values = Object.fromEntries(form);
  return pageOf(call, await links.use(token, values), values);
}

function linksOf({ dependencies }: HttpCall) {
  const { signalLinks } = dependencies.orchestrator;
  if (signalLinks) return signalLinks;
  throw new OrchestratorError('INTERNAL', 'the routes of signal links need the option `signalLinks`');
}

function pageOf(call: HttpCall, status: SignalLinkStatus, values: Readonly<Record<string, string>> = {}): Reply {
  const { texts } = linksOf(call);
  const { state, page = {} } = status;
  const shown = (text: string) => escapeHtml(call.dependencies.mask(text));
  const own = { ...PAGES[state], ...texts.states?.[state] };
  const isAsked = state === 'open' || state === 'invalid';
  const title = shown(isAsked && page.title !== undefined && state === 'open' ? page.title : own.title);
  const question = isAsked ? questionOf(status, shown) : '';
  const form = isAsked ? formOf(status, values, page.confirm ?? texts.confirm ?? 'Confirm', shown) : '';
  const html = `<!doctype html>
<html lang="${texts.lang ?? 'en'}">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta name="robots" content="noindex"><title>${title}</title></head>
<body><main><h1>${title}</h1>${question}<p>${shown(own.text)}</p>${form}</main></body>
</html>
`;
  return { status: own.status, html, headers: HEADERS };
}

/** The text of the page. Without one, the payload that the button sends, so that nobody mistakes a refusal for an approval. */
function questionOf(
  { state, name = '', payload, page = {} }: SignalLinkStatus,
  shown: (text: string) => string,
): string {
  const { title, text } = page;
  const heading = state === 'invalid' && title !== undefined ? `<p><strong>${shown(title)}</strong></p>` : '';
  if (text !== undefined) return `${heading}<p>${shown(text)}</p>`;
  const what = title === undefined ? `<p><strong>${shown(name)}</strong></p>` : heading;
  return payload === null ? what : `${what}<pre>${shown(JSON.stringify(payload, null, 2))}</pre>`;
}

type Field = Readonly<Record<string, unknown>>;

function formOf(
  { page, issues = [] }: SignalLinkStatus,
  values: Readonly<Record<string, string>>,
  confirm: string,
  shown: (text: string) => string,
): string {
  const { properties = {}, required = [] } = (page?.fields ?? {}) as {
    readonly properties?: Readonly<Record<string, Field>>;
    readonly required?: readonly string[];
  };
  const others = issues.filter(({ path }) => !Object.hasOwn(properties, path));
  const general = others.map(({ path, message }) => `<p><em>${shown(`${path} ${message}`.trim())}</em></p>`);
  const fields = Object.entries(properties).map(([name, field]) => {
    const { title = name, description } = field;
    const problems = issues.filter(({ path }) => path === name).map(({ message }) => `<br><em>${shown(message)}</em>`);
    const help = description === undefined ? '' : `<br><small>${shown(String(description))}</small>`;
    const input = inputOf(
      name,
      field,
      required.includes(name),
      Object.hasOwn(values, name) ? values[name] : undefined,
      shown,
    );
    return `<p><label>${shown(String(title))}<br>${input}</label>${help}${problems.join('')}</p>`;
  });
  return `<form method="post">${general.join('')}${fields.join('')}<button type="submit">${shown(confirm)}</button></form>`;
}

const INPUT_TYPES: Readonly<Record<string, string>> = { date: 'date', email: 'email', uri: 'url', time: 'time' };
/** A longer text has a box of several lines. */
const ONE_LINE = 200;

function inputOf(
  name: string,
  { type, enum: allowed, format, minimum, maximum, maxLength, default: preset }: Field,
  isRequired: boolean,
  given: string | undefined,
  shown: (text: string) => string,
): string {
  const value =
    given ?? (preset === undefined ? '' : typeof preset === 'object' ? JSON.stringify(preset) : String(preset));
  const attributes = (more: Readonly<Record<string, unknown>>) =>
    Object.entries({ name, ...more })
      .flatMap(([key, one]) => (one === undefined ? [] : [`${key}="${shown(String(one))}"`]))
      .join(' ');
  const required = isRequired ? 'required' : undefined;
  if (Array.isArray(allowed)) {
    const options = (isRequired ? allowed : ['', ...allowed]).map((one) => {
      const isChosen = String(one) === value ? ' selected="selected"' : '';
      return `<option value="${shown(String(one))}"${isChosen}>${shown(String(one))}</option>`;
    });
    return `<select ${attributes({ required })}>${options.join('')}</select>`;
  }
  if (type === 'boolean')
    return `<input ${attributes({ type: 'checkbox', value: 'true', checked: value === 'true' ? 'checked' : undefined })}>`;
  if (type === 'number' || type === 'integer') {
    const step = type === 'integer' ? 1 : 'any';
    return `<input ${attributes({ type: 'number', step, min: minimum, max: maximum, required, value })}>`;
  }
  if (Number(maxLength) > ONE_LINE || !isAskedPlainly({ type, enum: allowed } as JsonObject))
    return `<textarea ${attributes({ maxlength: maxLength, required })}>${shown(value)}</textarea>`;
  const kind = INPUT_TYPES[String(format)] ?? 'text';
  return `<input ${attributes({ type: kind, maxlength: maxLength, required, value })}>`;
}

/** Control characters except line feeds, direction marks, and characters without width: they could hide a part of the text or move it. */
const UNSEEN = /[^\P{Cc}\n]|[\p{Cf}\p{Zl}\p{Zp}]/gu;

function escapeHtml(text: string): string {
  const visible = text.replace(UNSEEN, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`);
  return visible.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
