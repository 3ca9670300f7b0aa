/** The problems of several ensembles are reported together, each with its ensemble. */

import { describe, expect, it } from 'vitest';
import type { DefinitionIssue } from '../../src/engine/base/errors.ts';
import { createOrchestrator, isOrchestratorError, type OrchestratorError } from '../../src/index.ts';

const webhook = (name: string) =>
  `name: ${name}\nflow: []\ntrigger: [{ type: webhook, path: /webhooks/in, public: true }]\n`;

function refusal(...ensembles: (string | object)[]): OrchestratorError {
  try {
    createOrchestrator({ ensembles: ensembles as never[] });
  } catch (error) {
    if (isOrchestratorError(error)) return error;
    throw error;
  }
  throw new Error('they were taken');
}

function problems(error: OrchestratorError): (string | undefined)[] {
  const issues = error.details.issues as readonly DefinitionIssue[];
  return issues.map(({ ensemble, line, path, message }) => `${ensemble} ${line ?? '-'} ${path}: ${message}`);
}

describe('createOrchestrator reports the problems of all ensembles together', () => {
  it('problems of form, of expressions and of YAML, in the order of the ensembles', () => {
    const error = refusal(
      'name: a\nflwo: []\nflow: []\n',
      'name: fine\nflow: []\n',
      { name: 'b', flow: [], outputs: { x: '${nobody.output}' } },
      'name: [\n',
      { flow: [] },
    );
    expect(error.code).toBe('INVALID_DEFINITION');
    expect(problems(error)).toEqual([
      'a 2 flwo: `flwo` is not a key of an ensemble',
      'b - outputs.x: there is no agent or name `nobody`',
      expect.stringMatching(/^ensembles\[3\] \d/),
      'ensembles[4] - name: `name` is required',
    ]);
    expect(error.message).toMatch(/^4 ensembles have 4 problems:\n\nensemble `a`:\n2:1 flwo: `flwo` is not a key/);
    expect(error.message).toContain('\n\nensemble `ensembles[4]`:\nname: `name` is required');
  });

  it('two ensembles of one name, two triggers on one path, an unknown child: each is an issue', () => {
    expect(problems(refusal('name: a\nflow: []\n', 'name: a\nflow: []\n'))).toEqual([
      'a 1 name: two ensembles are named `a`; rename one of them',
    ]);
    const error = refusal(webhook('a'), webhook('b'), 'name: c\nflow:\n  - ensemble: d\n  - agnet: x\n');
    expect(problems(error)).toEqual([
      'b 3 trigger[0].path: ensembles `a` and `b` both have a trigger for POST /webhooks/in; change one of them',
      'c 3 flow[0].ensemble: there is no ensemble `d`',
      'c 4 flow[1].agnet: `agnet` is not a key of a step',
    ]);
  });

  it('an ensemble whose name can not be read may be the one that a step starts', () => {
    expect(problems(refusal({ name: 7, flow: [] }, { name: 'a', flow: [{ ensemble: 'other' }] }))).toEqual([
      'ensembles[0] - name: must be a string, not 7',
    ]);
  });

  it('the code is NOT_CONFIGURED if the only problems are things that the host lacks', () => {
    const mail = (name: string) => ({ name, flow: [{ agent: 'x', operation: 'pdf', config: { html: 'x' } }] });
    expect(refusal(mail('a'), mail('b')).code).toBe('NOT_CONFIGURED');
    expect(refusal(mail('a'), { name: 'b', flow: [{}] }).code).toBe('INVALID_DEFINITION');
  });

  it('a shared agent that contains a function is refused, with the position', () => {
    const agent = { name: 'x', operation: 'code', config: { script: () => 1 } };
    const create = () => createOrchestrator({ agents: [agent as never] });
    expect(create).toThrow(/agents\[0\]: `config\.script` is a function/);
    expect(create).toThrow(expect.objectContaining({ code: 'INVALID_DEFINITION' }));
  });
});
