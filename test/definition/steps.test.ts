/** The step builders return the same objects as the YAML text. */

import { describe, expect, expectTypeOf, test } from 'vitest';
import { compileEnsemble } from '../../src/engine/definition/compile/compile-ensemble.ts';
import { parseDefinition, parseEnsemble } from '../../src/engine/definition/read/parse-ensemble.ts';
import {
  agent,
  defineEnsemble,
  foreach,
  parallel,
  type StepDraft,
  sleep,
  switchOn,
  tryCatch,
  when,
  whileLoop,
} from '../../src/index.ts';
import { hostFor } from './definition-fixtures.ts';

const SETTLE = `
name: settle
inputs: { kind: { type: string }, lines: { type: array } }
agents:
  - { name: check, operation: code, config: { script: score } }
  - { name: charge, operation: code, config: { script: score } }
  - { name: poll, operation: code, config: { script: score } }
flow:
  - agent: check
    input: { lines: "\${input.lines}" }
    retry: { maxAttempts: 3 }
  - if: check.output.value > 0
    then: [{ agent: check, name: twice }]
  - if: \${check.failed}
    then: []
    else: [{ agent: note, operation: code, config: { script: notify } }]
  - parallel:
      - foreach: \${input.lines}
        steps: [{ agent: each, operation: code, config: { script: score }, input: "\${line}" }]
        as: line
        concurrency: 4
        name: lines
      - sleep: 90s
    waitFor: any
    name: both
  - switch: \${input.kind}
    cases:
      refund: [{ agent: refund, operation: code, config: { script: notify } }]
      "in transit": []
    default: [{ sleep: { until: 2030-01-31 }, name: woke }]
  - while: \${poll.output.more}
    steps: [{ agent: poll }, { foreach: [1, two], steps: [{ sleep: 1000 }] }]
    maxIterations: 9
  - try: [{ agent: charge }]
    catch: [{ agent: alert, operation: code, config: { script: notify }, input: "\${error.message}" }]
    finally: [{ sleep: "\${input.kind}", condition: "\${charge.success}" }]
  - try: [{ sleep: 1 }]
    finally: []
outputs: { both: "\${both.output}" }
`;

const code = <const S extends string>(script: S) => ({ operation: 'code', config: { script } }) as const;

const settle = defineEnsemble({
  name: 'settle',
  inputs: { kind: { type: 'string' }, lines: { type: 'array' } },
  agents: [
    { name: 'check', ...code('score') },
    { name: 'charge', ...code('score') },
    { name: 'poll', ...code('score') },
  ],
  flow: [
    agent('check', { input: { lines: '${input.lines}' }, retry: { maxAttempts: 3 } }),
    when('check.output.value > 0', [agent('check', { name: 'twice' })]),
    when('${check.failed}', [], [agent('note', code('notify'))]),
    parallel(
      [
        foreach('${input.lines}', [agent('each', { ...code('score'), input: '${line}' })], {
          as: 'line',
          concurrency: 4,
          name: 'lines',
        }),
        sleep('90s'),
      ],
      { waitFor: 'any', name: 'both' },
    ),
    switchOn('${input.kind}', { refund: [agent('refund', code('notify'))], 'in transit': [] }, [
      sleep({ until: '2030-01-31' }, { name: 'woke' }),
    ]),
    whileLoop('${poll.output.more}', [agent('poll'), foreach([1, 'two'], [sleep(1000)])], { maxIterations: 9 }),
    tryCatch([agent('charge')], {
      catch: [agent('alert', { ...code('notify'), input: '${error.message}' })],
      finally: [sleep('${input.kind}', { condition: '${charge.success}' })],
    }),
    tryCatch([sleep(1)], { finally: [] }),
  ],
  outputs: { both: '${both.output}' },
});

describe('step builders', () => {
  test('return the objects of the text, with the same hash', () => {
    const parsed = parseEnsemble(SETTLE);
    expect(settle.flow).toStrictEqual(parsed.flow);
    const versions = [SETTLE, settle].map((source) => {
      const { compiled, problems } = compileEnsemble(parseDefinition(source), hostFor());
      expect(problems).toEqual([]);
      return compiled.stored.version;
    });
    expect(versions[0]).toBe(versions[1]);
  });

  test('leave out options that are not given', () => {
    const steps: StepDraft[] = [
      agent('b'),
      when(true, []),
      foreach('${input}', []),
      parallel([]),
      switchOn('x', {}),
      whileLoop(false, []),
      tryCatch([], { catch: [] }),
      sleep(0),
    ];
    expect(steps.map((step) => Object.keys(step))).toEqual([
      ['agent'],
      ['if', 'then'],
      ['foreach', 'steps'],
      ['parallel'],
      ['switch', 'cases'],
      ['while', 'steps'],
      ['try', 'catch'],
      ['sleep'],
    ]);
  });

  test('wrong use is a type error', () => {
    expectTypeOf(agent('b')).toExtend<StepDraft>();
    // @ts-expect-error - `catch` or `finally` is needed
    tryCatch([], {});
    // @ts-expect-error - not a step
    parallel(['b']);
    // @ts-expect-error - `waitFor` is all, any or first
    parallel([], { waitFor: 'some' });
    // @ts-expect-error - an option of another step
    whileLoop(true, [], { concurrency: 2 });
    // @ts-expect-error - a branch is a list of steps
    switchOn('x', { a: agent('b') });
    // @ts-expect-error - `until` is needed
    sleep({});
  });
});
