/** Checks the JSON Schema that `ensemble schema` prints: a validator accepts valid definitions and refuses wrong forms. */

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Ajv } from 'ajv';
import { describe, expect, test } from 'vitest';
import { definitionSchema } from '../../src/cli/schema/definition-schema.ts';
import { compileEnsemble } from '../../src/engine/definition/compile/compile-ensemble.ts';
import { parseDefinition } from '../../src/engine/definition/read/parse-ensemble.ts';
import { readSource } from '../../src/engine/definition/source/read-source.ts';
import { compileHost } from '../../src/orchestrator/create-orchestrator.ts';
import { type BrokenVector, hostFor, readVectors, type ValidVector } from './definition-fixtures.ts';

const ajv = new Ajv({ strict: true, strictTypes: false, strictRequired: false, allErrors: true });
// What editors read in addition.
ajv.addVocabulary(['markdownDescription', 'errorMessage', 'doNotSuggest']);
const validate = ajv.compile(definitionSchema(compileHost({}).operations));

function dataOf(source: string): unknown {
  const read = readSource(source);
  return read.ok ? read.value : undefined;
}

function filesUnder(folder: string): string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => /(^|\/)ensembles\/[^/]+\.ya?ml$/.test(file) && !file.includes('node_modules'))
    .map((file) => `${folder}/${file}`);
}

// Mistakes that a schema can find: a wrong type, an unknown key or value, a missing key, two spellings.
const FORM_PROBLEM =
  /^must be (?!`object`|a (?:plain|whole number, not 1\.5|number, not '0'))|is not a key of|is not a step of its own|step needs|one thing|is required$|is required:|means the same as|must have at|needs `(?:auth|catch)`/;

describe('the JSON Schema of a definition', () => {
  test.each(readVectors<ValidVector>('valid'))('accepts $file: $why', ({ source, same = [] }) => {
    for (const text of [source, ...same]) {
      validate(dataOf(text));
      expect(validate.errors, text).toBeNull();
    }
  });

  test('accepts every ensemble of the examples', () => {
    for (const file of filesUnder(fileURLToPath(new URL('../../examples', import.meta.url)))) {
      if (file.endsWith('.test.yaml')) continue;
      validate(dataOf(readFileSync(file, 'utf8')));
      expect(validate.errors, file).toBeNull();
    }
  });

  test('refuses the broken definitions whose form is wrong', () => {
    const shaped = readVectors<BrokenVector>('broken').filter(
      ({ file, source, issues }) =>
        !['agents', 'expressions', 'many'].includes(file) &&
        dataOf(source) !== undefined &&
        issues.some(({ message, path }) => FORM_PROBLEM.test(message) && !/config\.(?!routes)/.test(path)),
    );
    expect(shaped.length).toBeGreaterThanOrEqual(30);
    const accepted = shaped.filter(({ source }) => validate(dataOf(source)));
    // A schema can't compare values without `$data`, can't check addresses that may contain expressions, durations, text around an
    // expression, and does not know the routes under `config` of the older form.
    expect(accepted.map(({ file, why }) => `${file}: ${why}`)).toEqual([
      'inputs: the default is not in the enum',
      'inputs: an enum that does not fit the type',
      'notifications: an invalid url, invalid addresses and an invalid subject',
      'notifications: a timeout that is too long',
      'older-form: a Route whose routes under config are wrong',
      'schedules: a missing input that is required',
      'steps: a `foreach` over mixed text',
      'triggers: the issuer of oauth over http',
    ]);
  });

  test('checks steps of every kind at every depth', () => {
    const at = (step: unknown) => ({
      name: 'a',
      flow: [{ if: 'x', then: [{ foreach: [1], steps: [{ if: 'y', then: [], else: [step] }] }] }],
    });
    expect(validate(at({ agent: 'b' }))).toBe(true);
    expect(validate(at({ agent: 5 }))).toBe(false);
    expect(validate(at({ agnt: 'b' }))).toBe(false);
  });

  test('checks steps inside every list of every form', () => {
    const b = { agent: 'b' };
    const around = (step: unknown): readonly unknown[] => [
      { if: 'x', then: [step] },
      { if: 'x', then: [], else: [step] },
      { foreach: [1], steps: [b, step] },
      { parallel: [b, step] },
      { switch: 'x', cases: { one: [b], 'two words': [step] } },
      { switch: 'x', cases: { one: [b] }, default: [step] },
      { while: 'x', steps: [step] },
      { try: [step], finally: [b] },
      { try: [b], catch: [step] },
      { try: [b], finally: [step] },
    ];
    const isAccepted = (step: unknown) => validate({ name: 'a', flow: [step] });
    for (const outer of around(b)) expect(around(outer).map(isAccepted), JSON.stringify(outer)).not.toContain(false);
    for (const outer of around({ agnt: 'b' })) {
      expect(around(outer).map(isAccepted), JSON.stringify(outer)).not.toContain(true);
    }
  });

  const b = [{ agent: 'b' }];
  const sleepStep = [{ sleep: 1 }];
  test.each<[isAccepted: boolean, steps: readonly object[]]>([
    [true, [{ parallel: b, waitFor: 'first', concurrency: 3, name: 'n', condition: true, continueOnError: false }]],
    [false, [{ parallel: [] }, { parallel: {} }, { parallel: b, waitFor: 'some' }, { parallel: b, concurrency: 0 }]],
    [
      false,
      [
        { parallel: b, name: 'a b' },
        { parallel: b, when: 'x', condition: 'x' },
        { parallel: b, steps: b },
      ],
    ],
    [
      true,
      [
        { switch: 'x', cases: { a: [] } },
        { switch: true, cases: { '': b }, default: [] },
      ],
    ],
    [false, [{ switch: 'x' }, { switch: 'x', cases: {} }, { switch: 5, cases: { a: b } }, { switch: 'x', cases: b }]],
    [
      false,
      [
        { switch: 'x', cases: { a: { agent: 'b' } } },
        { switch: 'x', cases: { a: b }, default: {} },
      ],
    ],
    [
      false,
      [
        { switch: 'x', cases: { a: b }, name: 'n' },
        { switch: 'x', cases: { a: b }, else: [] },
      ],
    ],
    [
      true,
      [
        { while: 'x', steps: b, maxIterations: 1 },
        { while: true, steps: b },
      ],
    ],
    [false, [{ while: 'x' }, { while: 'x', steps: [] }, { while: 1, steps: b }, { while: 'x', steps: b, name: 'n' }]],
    [false, [0, 1_000_001, 1.5, '5'].map((maxIterations) => ({ while: 'x', steps: b, maxIterations }))],
    [
      true,
      [
        { try: b, catch: [] },
        { try: b, finally: sleepStep },
        { try: b, catch: sleepStep, finally: [] },
      ],
    ],
    [false, [{ try: b }, { try: [], catch: b }, { try: b, catch: {} }, { try: b, catch: b, condition: 'x' }]],
    [true, [0, 1.5, 315_360_000_000, '90s', ' 1h 30m ', '1.5 d', '${x}', '${x}s'].map((sleep) => ({ sleep }))],
    [false, [-1, 315_360_000_001, true, null, '', '90', '5 minutes', '-5s', [1], {}].map((sleep) => ({ sleep }))],
    [true, ['2030-01-31', '2030-01-31T08:00:00+01:00', '2030-01-31 08:00', 1e12, '${x}'].map((until) => ({ until }))],
    [true, [{ sleep: { until: '2030-01-31' }, name: 'n', when: 'x' }]],
    [false, ['', 'tomorrow', '90s', '31.01.2030', true, null].flatMap((until) => [{ until }, { sleep: { until } }])],
    [
      false,
      [{ sleep: { untl: 5 } }, { sleep: { until: 5, zone: 'x' } }, { sleep: 5, until: 5 }, { until: 5, steps: b }],
    ],
    [
      true,
      [
        { ensemble: 'c', input: [1], detached: true, name: 'n', condition: true, continueOnError: false },
        { ensemble: 'c-d', when: 'x' },
      ],
    ],
    [
      true,
      [1, 0.5, 315_360_000_000, '10m', '1h 30m', '0h1m', '${x}', '${x}s'].map((timeout) => ({
        ensemble: 'c',
        timeout,
      })),
    ],
    [
      false,
      [0, -1, 315_360_000_001, true, null, '', '90', '0s', '0m 0s'].map((timeout) => ({ ensemble: 'c', timeout })),
    ],
    [false, [5, null, '', 'a b', '${x}', ['c']].map((ensemble) => ({ ensemble }))],
    [
      false,
      [{ retry: {} }, { async: true }, { steps: b }, { when: 'x', condition: 'x' }].map((more) => ({
        ensemble: 'c',
        ...more,
      })),
    ],
    [
      false,
      [{ detached: '${x}' }, { continueOnError: 1 }, { name: 'a b' }, { agent: 'b' }].map((more) => ({
        ensemble: 'c',
        ...more,
      })),
    ],
  ])('agrees with the parser (accepted: %s): %j', (isAccepted, steps) => {
    const agents = [{ name: 'b', operation: 'code', config: { script: 'score' } }];
    for (const step of steps) {
      expect(validate({ name: 'a', flow: [step] }), JSON.stringify(step)).toBe(isAccepted);
      const { problems } = compileEnsemble(
        parseDefinition({ name: 'a', flow: [step], inputs: { x: {} }, agents }),
        hostFor(),
      );
      const formProblems = problems.filter(({ message }) => message !== 'there is no agent or name `x`');
      expect(formProblems.length === 0, JSON.stringify([step, problems])).toBe(isAccepted);
    }
  });
});
