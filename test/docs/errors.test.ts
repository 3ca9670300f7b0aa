/** The page of error codes: a row for each code, with its HTTP status. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { STATUS } from '../../src/http-handlers/reply/status.ts';
import { ROOT } from './code-blocks.ts';

it('every error code has a row with its HTTP status, and no other code has one', () => {
  const page = readFileSync(join(ROOT, 'docs/reference/errors.md'), 'utf8');
  const rows = [...page.matchAll(/^\| `([A-Z_]+)` \| (\d{3}) \|/gm)].map(([, code, status]) => [code, Number(status)]);
  expect(rows).toEqual(Object.entries(STATUS));
});
