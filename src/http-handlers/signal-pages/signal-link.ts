/** `/signals/:token`: the pages of a link of `signalUrl()`. Opening the page changes nothing; its button sends the signal. */

import { OrchestratorError } from '../../engine/base/errors.ts';
import type { SignalLinkState, SignalLinkStatus } from '../../orchestrator/signals/signal-links.ts';
import type { HttpCall } from '../call.ts';
import type { Reply } from '../reply.ts';
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

const FORM = '<form method="post"><button type="submit">Confirm</button></form>';

const PAGES: Readonly<
  Record<SignalLinkState, { readonly status: number; readonly title: string; readonly text: string }>
> = {
  open: { status: 200, title: 'Please confirm', text: 'Press the button to send your answer.' },
  given: { status: 200, title: 'Thank you', text: 'Your answer was saved. You can close this page.' },
  answered: { status: 409, title: 'Already answered', text: 'An answer was saved before. Nothing has changed.' },
  over: { status: 410, title: 'Too late', text: 'This answer is no longer needed. Nothing has changed.' },
  unknown: { status: 404, title: 'No such link', text: 'Please check that you have the whole address.' },
};

/** Mail scanners request this page too, so it changes nothing. */
async function showLink(call: HttpCall): Promise<Reply> {
  return page(await linksOf(call).read(call.params.token ?? ''), call.parts.mask);
}

/** Ignores the body. */
async function followLink(call: HttpCall): Promise<Reply> {
  return page(await linksOf(call).use(call.params.token ?? ''), call.parts.mask);
}

function linksOf({ parts }: HttpCall) {
  const { signalLinks } = parts.orchestrator;
  if (signalLinks) return signalLinks;
  throw new OrchestratorError('INTERNAL', 'the routes of signal links need the option `signalLinks`');
}

function page({ state, name = '', payload }: SignalLinkStatus, mask: HttpCall['parts']['mask']): Reply {
  const { status, title, text } = PAGES[state];
  const question = state === 'open' ? `<p><strong>${escapeHtml(name)}</strong></p>${shown(payload, mask)}` : '';
  const html = `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta name="robots" content="noindex"><title>${title}</title></head>
<body><main><h1>${title}</h1>${question}<p>${text}</p>${state === 'open' ? FORM : ''}</main></body>
</html>
`;
  return { status, html, headers: HEADERS };
}

/** The payload that the button sends, so that nobody mistakes a refusal for an approval. */
function shown(payload: unknown, mask: HttpCall['parts']['mask']): string {
  return payload === null ? '' : `<pre>${escapeHtml(mask(JSON.stringify(payload, null, 2)))}</pre>`;
}

/** Control characters except line feeds, direction marks, and characters without width: they could hide a part of the text or move it. */
const UNSEEN = /[^\P{Cc}\n]|[\p{Cf}\p{Zl}\p{Zp}]/gu;

function escapeHtml(text: string): string {
  const visible = text.replace(UNSEEN, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`);
  return visible.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
