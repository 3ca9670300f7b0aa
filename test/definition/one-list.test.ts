/** All problems of one file come in one list, in the order of the file, whatever their kind. */

import { describe, expect, test } from 'vitest';
import type { DefinitionIssue } from '../../src/engine/base/errors.ts';
import { createOrchestrator, isOrchestratorError, parseEnsemble } from '../../src/index.ts';
import { type BrokenVector, options, readVectors } from './definition-fixtures.ts';

function problemsOf(source: string, agents: BrokenVector['agents'] = []): string[] {
  try {
    createOrchestrator({ ...options(), ensembles: [source], agents });
    return [];
  } catch (error) {
    if (!isOrchestratorError(error, 'INVALID_DEFINITION') && !isOrchestratorError(error, 'NOT_CONFIGURED')) throw error;
    const issues = error.details.issues as readonly DefinitionIssue[];
    return issues.map(({ line, column, path, message }) => `${line}:${column} ${path}: ${message}`);
  }
}

const vectors = readVectors<BrokenVector>('broken').filter(({ source }) => {
  return !/^(?:outputs|output|"?\{)/m.test(source) && /^name/m.test(source) && !source.includes('__proto__');
});

describe('problems of the form and of the references', () => {
  test('of one file', () => {
    const problems = problemsOf(`name: order
inputs: { id: { type: strin } }
flow:
  - agent: look
    operation: api
    timeout: soon
    input: \${inptu.id}
    config: { ulr: https://example.com }
  - agent: calc
    operation: code
    retry: { maxAttempts: 0 }
    config: { script: nope }
  - if: \${look.outptu}
    els: []
    then: [{ agnet: x }]
outputs:
  a: \${nobody.output}
  b: \${input.idd}
`);
    expect(problems.map((problem) => problem.split(': ')[0])).toEqual([
      '2:23 inputs.id.type',
      '6:14 flow[0].timeout',
      '7:14 flow[0].input',
      '8:15 flow[0].config.ulr',
      '11:27 flow[1].retry.maxAttempts',
      '12:23 flow[1].config.script',
      '13:11 flow[2].if',
      '14:5 flow[2].els',
      '15:14 flow[2].then[0].agnet',
      '17:8 outputs.a',
      '18:8 outputs.b',
    ]);
  });

  test.each(vectors)('a problem at the end of $file: $why', ({ source, issues, agents }) => {
    const problems = problemsOf(`${source.trimEnd()}\noutputs:\n  last: "\${input.x + }"\n`, agents);
    expect(problems.at(-1)).toContain(' outputs.last: ');
    expect(problems.slice(0, -1)).toEqual(issues.map(({ at, path, message }) => `${at} ${path}: ${message}`));
  });
});

describe('values that JSON does not have', () => {
  test('cause no other problem: of the value, of its map, and of the names inside', () => {
    const problems = problemsOf(`name: order
inputs: { id: { type: string } }
inputs: { ids: { type: string } }
timeout: .inf
flow:
  - { agent: a, operation: code, config: { script: score }, retry: { maxAttempts: 99999999999999999999 } }
flow:
  - { agent: b, operation: code, config: { script: score }, input: "\${a.output} \${input.id}" }
outputs: { a: "\${a.output}", b: *anchor }
`);
    expect(problems).toEqual([
      '3:1 inputs: the key `inputs` is given twice in this map; keep one of the two',
      "4:10 timeout: JSON can't hold `.inf`; use null, or put it in quotes for text",
      '6:83 flow[0].retry.maxAttempts: the integer `99999999999999999999` is beyond 2^53 and would be rounded; put it in quotes for text',
      '7:1 flow: the key `flow` is given twice in this map; keep one of the two',
      '9:33 outputs.b: there is no anchor `&anchor` before this alias',
    ]);
  });

  test('parseEnsemble refuses them too', () => {
    expect(() => parseEnsemble('name: a\nname: b\nflow: []\n')).toThrow('the key `name` is given twice');
  });
});
