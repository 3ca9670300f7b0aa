/** The fields of a mail: each is exactly what it says, or is refused. */

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  lineProblem,
  mailHeaderProblem,
  mediaTypeProblem,
  readAddress,
  readFilename,
  readPlainAddress,
} from '../../src/engine/operation/mail-fields.ts';

const cc = (code: number) => String.fromCodePoint(code);
const LINE_BREAKS = ['\r', '\n', '\r\n', '\0', '\u2028', '\u2029', '\u0085', '\t'];

describe('an address', () => {
  it.each([
    ['ada@example.com', 'ada@example.com'],
    ['  ada@example.com ', 'ada@example.com'],
    ["o'hara+news/2026=x@mail.example.co.uk", "o'hara+news/2026=x@mail.example.co.uk"],
    ['root@localhost', 'root@localhost'],
    ['ada@bücher.example', 'ada@xn--bcher-kva.example'],
    ['ada@例え.テスト', 'ada@xn--r8jz45g.xn--zckzah'],
  ])('%j is %s', (text, address) => {
    expect(readAddress(text).value).toEqual({ address });
  });

  it.each([
    ['Ada Lovelace <ada@example.com>', 'Ada Lovelace'],
    ['"Lovelace, Ada \\"the\\" <x@y.z>" <ada@example.com>', 'Lovelace, Ada "the" <x@y.z>'],
    ['Zażółć <ada@example.com>', 'Zażółć'],
  ])('%j has a name', (text, name) => {
    expect(readAddress(text).value).toEqual({ address: 'ada@example.com', name });
  });

  it.each([
    '',
    'ada',
    '@example.com',
    'ada@',
    'a@x.com, b@x.com',
    'a@x.com;b@x.com',
    'a@x.com b@x.com',
    'friends: a@x.com, b@x.com;',
    'a@x.com (comment)',
    '(comment)a@x.com',
    '<@relay.example:a@x.com>',
    '"evil@e.com x"@internal.example',
    '"a"@x.com',
    'a@b@c.com',
    '-oQ/tmp@x.com',
    'a..b@x.com',
    '.a@x.com',
    'a@x..com',
    'a@-x.com',
    'a@x-.com',
    'a@[127.0.0.1]',
    'a@127.0.0.1',
    'a@x.com/path',
    'a@x.com?x',
    'ada@exa℀mple.com',
    'ada@example。com/x',
    'żółć@example.com',
    'Ada, Bob <a@x.com>',
    'Ada <a@x.com>, Bob <b@x.com>',
    'Ada <a@x.com> <b@x.com>',
    '<Ada> a@x.com',
    `${'a'.repeat(65)}@x.com`,
    `a@${'x'.repeat(64)}.com`,
    `a@${'x.'.repeat(130)}com`,
    `a@${'x'.repeat(100_000)}`,
    ...LINE_BREAKS.flatMap((mark) => [`b@x.com${mark}Bcc: evil@e.com`, `Ada${mark} <a@x.com>`, `a@x${mark}.com`]),
  ])('%j is refused', (text) => {
    expect(readAddress(text).problem).toMatch(/exactly one address|line break|characters/);
  });

  it('in a batch has no name', () => {
    expect(readPlainAddress('Ada <a@x.com>').problem).toContain('exactly one address');
  });

  it('that is accepted has one @, printable ASCII, no separators, and at most 254 characters, whatever the text', () => {
    const part = fc.string({ unit: fc.constantFrom(...'ab1.-_+@<>",;:()[]\\ \t\r\n\0éż。＠１℀İß'), maxLength: 30 });
    fc.assert(
      fc.property(part, part, (local, domain) => {
        const { value } = readAddress(`${local}@${domain}`);
        if (!value) return;
        expect(value.address).toMatch(/^[a-zA-Z0-9._+][a-zA-Z0-9._+-]*@[a-zA-Z0-9.-]+$/);
        expect(value.address.length).toBeLessThanOrEqual(254);
        expect(lineProblem(value.name ?? '')).toBeUndefined();
      }),
      { numRuns: 5_000 },
    );
  });
});

it('a message about a wrong address holds none of its control characters', () => {
  expect(readPlainAddress('a\u001b[31m@x').problem).not.toContain('\u001b');
});

describe('a line', () => {
  it.each(['Hello', 'Zażółć 日本語 👩‍🚀', 'שלום', 'a  b', 'x'.repeat(998)])('%j fits', (text) => {
    expect(lineProblem(text)).toBeUndefined();
  });
  it.each([...LINE_BREAKS.map((mark) => `a${mark}b`), 'a\u007fb', 'a\ud800b', 'x'.repeat(999)])(
    '%j is refused',
    (text) => {
      expect(lineProblem(text)).toMatch(/remove it|at most/);
    },
  );
});

describe('a custom header', () => {
  it.each([
    ['List-Unsubscribe', '<https://e.com/x>'],
    ['X-Campaign', 'Wiosna – zażółć'],
    ['In-Reply-To', '<a@b>'],
  ])('%s is sent', (name, value) => {
    expect(mailHeaderProblem(name, value)).toBeUndefined();
  });
  it.each([
    ...[
      'Bcc',
      'CC',
      'to',
      'From',
      'Sender',
      'Reply-To',
      'Return-Path',
      'Subject',
      'Date',
      'Message-ID',
      'MIME-Version',
    ],
    ...['Content-Type', 'content-transfer-encoding', 'Received', 'DKIM-Signature', 'ARC-Seal', 'Resent-To'],
    ...['X:Y', 'X Y', 'X\r\nBcc', 'X\n', '', 'Ż', 'x'.repeat(77)],
  ])('%j is refused', (name) => {
    expect(mailHeaderProblem(name, 'x')).toMatch(/belongs to the message|not the name/);
  });
  it.each(LINE_BREAKS)('with %j in its value is refused', (mark) => {
    expect(mailHeaderProblem('X-A', `a${mark}Bcc: evil@e.com`)).toContain('header `X-A` has a line break');
  });
});

describe('the name of a file', () => {
  it.each([
    ['report.pdf', 'report.pdf'],
    ['Rechnung für Zoë.pdf', 'Rechnung für Zoë.pdf'],
    ['../../etc/passwd', 'passwd'],
    ['C:\\temp\\x.txt', 'x.txt'],
    ['reports/2026/a.pdf', 'a.pdf'],
  ])('%j is %s', (text, value) => {
    expect(readFilename(text)).toEqual({ value });
  });
  it.each([
    ...['', ' ', '.', '..', 'a/', 'a/..', `gpj${cc(0x202e)}exe`, `a${cc(0x2066)}b`, 'a\r\nb', 'a\0b', 'ż'.repeat(128)],
    'x'.repeat(5_000),
  ])('%j is refused', (text) => {
    expect(readFilename(text)).toHaveProperty('problem');
  });
});

it.each(['application/pdf', 'text/plain; charset=utf-8', 'image/svg+xml', 'text/x; a="b c"'])(
  '%s is a media type',
  (type) => {
    expect(mediaTypeProblem(type)).toBeUndefined();
  },
);
it.each(['text/html\r\nX-Evil: 1', 'text', 'text/', 'multipart/mixed; boundary=x', 'text/html X', 'a/b; c="\n"', ''])(
  '%j is not the media type of an attachment',
  (type) => {
    expect(mediaTypeProblem(type)).toContain('media type');
  },
);
