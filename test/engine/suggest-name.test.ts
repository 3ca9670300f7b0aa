/** Which known name is suggested for a misspelled name. */

import { describe, expect, test } from 'vitest';
import { suggestName } from '../../src/engine/base/suggest-name.ts';
import { formatIssue, issueParts } from '../../src/engine/definition/source/definition-issue.ts';

const KEYS = ['name', 'agents', 'flow', 'inputs', 'outputs', 'condition', 'continueOnError', 'if', 'timeout'];

describe('suggestName', () => {
  test.each([
    ['a swap of neighbours', 'folw', 'flow'],
    ['a missing letter', 'conditon', 'condition'],
    ['a letter too many', 'outpputs', 'outputs'],
    ['a wrong letter', 'timeoud', 'timeout'],
    ['only another case, in any number of letters', 'CONTINUEONERROR', 'continueOnError'],
    ['another case and a slip', 'Agnets', 'agents'],
    ['two slips in a long name', 'continueOnErorrs', 'continueOnError'],
    ['three slips in a long name', 'contnuOnEror', 'continueOnError'],
    ['a singular', 'input', 'inputs'],
  ])('finds the name for %s', (_what, written, meant) => {
    expect(suggestName(written, KEYS)).toBe(meant);
  });

  test.each(['xyz', 'id', 'of', 'n', '', 'retry', 'completelyElse', 'a'.repeat(5000)])(
    'suggests nothing for %j',
    (name) => {
      expect(suggestName(name, KEYS)).toBeUndefined();
    },
  );

  test('suggests the nearest name, and the first of two equally near names', () => {
    expect(suggestName('fetchUsr', ['fetchUrl2', 'fetchUser'])).toBe('fetchUser');
    expect(suggestName('stepx', ['stepa', 'stepb'])).toBe('stepa');
  });

  test('never suggests the name itself', () => {
    expect(suggestName('flow', new Set(['flow']))).toBeUndefined();
  });
});

describe('formatIssue', () => {
  test('prints place, path, message, frame and help like a compiler', () => {
    const issue = {
      path: 'flow[0].agent',
      message: 'the agent `notfiy` does not exist',
      line: 12,
      column: 12,
      frame: '  12 |   - agent: notfiy\n     |            ^^^^^^',
      suggestion: 'notify',
      source: 'orders.yaml',
    };
    expect(formatIssue(issue)).toBe(
      [
        'orders.yaml:12:12 flow[0].agent: the agent `notfiy` does not exist',
        '  12 |   - agent: notfiy',
        '     |            ^^^^^^',
        'help: did you mean `notify`?',
      ].join('\n'),
    );
    expect(issueParts(issue).place).toBe('orders.yaml:12:12');
  });

  test.each([
    [{ path: '', message: 'the document is empty' }, 'the document is empty'],
    [{ path: 'flow', message: 'expected a list' }, 'flow: expected a list'],
    [{ path: '', message: 'empty', source: 'a.yaml' }, 'a.yaml: empty'],
    [{ path: 'a', message: 'm', line: 3, column: 7 }, '3:7 a: m'],
  ])('leaves out what an issue does not have: %j', (issue, printed) => {
    expect(formatIssue(issue)).toBe(printed);
  });
});
