/** Checks the parts of notifications that the forms can't check: addresses, secrets and subjects. */

import type { EnsembleDefinition } from '../../model/ensemble.ts';
import type { Path } from '../source/problem.ts';
import type { FlowContext } from './resolve-agent.ts';
import { readSetting } from './setting-text.ts';

/** The names that a subject may read besides variables. */
const SUBJECT_NAMES = ['event', 'ensemble.name', 'timestamp'];

export function checkNotifications(definition: EnsembleDefinition, context: FlowContext): void {
  definition.notifications?.forEach((notification, i) => {
    const at = (...keys: (string | number)[]): Path => ['notifications', i, ...keys];
    if (notification.type === 'webhook') {
      checkUrl(notification.url, at('url'), context);
      const { secret } = notification;
      if (secret !== undefined && isBlank(readSetting(secret, 'a secret', at('secret'), context))) {
        context.report({ path: at('secret'), message: 'is an empty secret, which can sign nothing; set one' });
      }
      return;
    }
    const { to, from, subject } = notification;
    checkAddress(from, at('from'), context);
    for (const [n, address] of to.entries()) checkAddress(address, at('to', n), context);
    if (subject !== undefined) readSetting(subject, 'a subject', at('subject'), context, SUBJECT_NAMES);
  });
}

function isBlank(value: unknown): boolean {
  return value !== undefined && String(value ?? '').trim() === '';
}

function checkUrl(text: string, path: Path, context: FlowContext): void {
  if (context.dropped(path)) return;
  const value = readSetting(text, 'a url', path, context);
  if (value === undefined || /^https?:\/\/[^\s/]/i.test(String(value))) return;
  context.report({ path, message: 'must be a URL that begins with `https://` or `http://`' });
}

function checkAddress(text: string, path: Path, context: FlowContext): void {
  if (context.dropped(path)) return;
  const value = readSetting(text, 'an address', path, context);
  if (value === undefined || /^[^@\n\r]+@[^@\s]+$/.test(String(value))) return;
  context.report({ path, message: 'must be an e-mail address such as `ops@example.com`' });
}
