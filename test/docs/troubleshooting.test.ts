/** The troubleshooting page: every message on it exists in the source. */

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { ROOT } from './code-blocks.ts';

/** Removes the characters that differ between Markdown and a literal in the source. */
const plain = (text: string) => text.replace(/[`\\]/g, '');

it('every message is in the source, apart from its variable parts', () => {
  const source = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts'))
    .map((path) => plain(readFileSync(join(ROOT, 'src', path), 'utf8')))
    .join('\n');
  const page = readFileSync(join(ROOT, 'docs/troubleshooting.md'), 'utf8');
  const [named = ''] = page.split('## No message');
  const messages = [...named.matchAll(/^\| `(.+?)`(?: \(\d{3}\))? \|/gm)].map(([, message = '']) => message);
  expect(messages.length).toBeGreaterThan(40);
  const unknown = messages.flatMap((message) =>
    message
      .split(/\.\.\.|: | \(|, /)
      .map((part) => plain(part).trim())
      .filter((part) => part.length > 3 && !source.includes(part)),
  );
  expect(unknown).toEqual([]);
});
