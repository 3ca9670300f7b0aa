/** `/signals/:token`: the pages behind a link of `signalUrl()`. Looking changes nothing, the button gives the signal. */

import { OrchestratorError } from '../engine/errors.ts';
import type { SignalLinkState, SignalLinkStatus } from '../signal-links.ts';
import type { Call } from './call.ts';
import type { Reply } from './reply.ts';
import type { Route } from './router.ts';

/** The link is the credential: none of them asks for a token. */
export const LINK_ROUTES: readonly Route[] = [
  { method: 'GET', path: '/signals/:token', scope: 'public', run: showLink },
  { method: 'POST', path: '/signals/:token', scope: 'public', run: followLink },
];

const HEADERS = {
  // No script, no style, nothing from elsewhere, in no frame: a form that goes back to where it came from, and that is all.
  'content-security-policy': "default-src 'none'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
  'referrer-policy': 'no-referrer',
  'x-robots-tag': 'noindex, nofollow',
} as const;

const FORM = '<form method="post"><button type="submit">Confirm</button></form>';

const PAGES: Readonly<
  Record<SignalLinkState, { readonly status: number; readonly title: string; readonly text: string }>
> = {
  open: { status: 200, title: 'Please confirm', text: 'Your answer is given when you press the button.' },
  given: { status: 200, title: 'Thank you', text: 'Your answer was given. You can close this page.' },
  answered: { status: 409, title: 'Already answered', text: 'There is an answer already. Nothing was changed.' },
  over: { status: 410, title: 'Too late', text: 'This answer is not waited for any more. Nothing was changed.' },
  unknown: { status: 404, title: 'No such link', text: 'Please check that you have the whole address.' },
};

/** What mail scanners ask for too. */
async function showLink(call: Call): Promise<Reply> {
  return page(await linksOf(call).read(call.params.token ?? ''), call.parts.mask);
}

/** A body is not looked at. */
async function followLink(call: Call): Promise<Reply> {
  return page(await linksOf(call).use(call.params.token ?? ''), call.parts.mask);
}

function linksOf({ parts }: Call) {
  const { signalLinks } = parts.orchestrator;
  if (signalLinks) return signalLinks;
  throw new OrchestratorError('INTERNAL', 'the routes of links stand only where links are set up');
}

function page({ state, name = '', payload }: SignalLinkStatus, mask: Call['parts']['mask']): Reply {
  const { status, title, text } = PAGES[state];
  const asked = state === 'open' ? `<p><strong>${escapeHtml(name)}</strong></p>${shown(payload, mask)}` : '';
  const html = `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta name="robots" content="noindex"><title>${title}</title></head>
<body><main><h1>${title}</h1>${asked}<p>${text}</p>${state === 'open' ? FORM : ''}</main></body>
</html>
`;
  return { status, html, headers: HEADERS };
}

/** What is answered, so that nobody takes a refusal for an approval. */
function shown(payload: unknown, mask: Call['parts']['mask']): string {
  return payload === null ? '' : `<pre>${escapeHtml(mask(JSON.stringify(payload, null, 2)))}</pre>`;
}

/** Controls but the end of a line, marks of direction, what has no width: they would hide a part, or show it elsewhere than it is. */
const UNSEEN = /[^\P{Cc}\n]|[\p{Cf}\p{Zl}\p{Zp}]/gu;

function escapeHtml(text: string): string {
  const visible = text.replace(UNSEEN, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`);
  return visible.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
