/** Checks the JSON Schema that `ensemble schema` prints: a validator takes the right definitions and refuses wrong forms. */

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, test } from 'vitest';
import { readSource } from '../../src/engine/definition/read-source.ts';
import { ensembleJsonSchema } from '../../src/engine/definition/schema.ts';
import { type BrokenVector, readVectors, type ValidVector } from './definition-fixtures.ts';

const validate = new Ajv2020({
  strict: true,
  strictTypes: false,
  strictRequired: false,
  allErrors: true,
}).compile(ensembleJsonSchema());

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

// Faults that a schema sees: a wrong kind, an unknown key or value, a missing key, two spellings.
const OF_FORM =
  /^must be (?!`object`|a (?:plain|whole number, not 1\.5|number, not '0'))|is not a key of|is required$|is required:|means the same as|must have at|needs `auth`/;

describe('the JSON Schema of a definition', () => {
  test.each(readVectors<ValidVector>('valid'))('takes $file: $why', ({ source, same = [] }) => {
    for (const text of [source, ...same]) {
      validate(dataOf(text));
      expect(validate.errors, text).toBeNull();
    }
  });

  test('takes every ensemble of the examples', () => {
    for (const file of filesUnder(fileURLToPath(new URL('../../examples', import.meta.url)))) {
      validate(dataOf(readFileSync(file, 'utf8')));
      expect(validate.errors, file).toBeNull();
    }
  });

  test('refuses the broken definitions whose fault is of form', () => {
    const shaped = readVectors<BrokenVector>('broken').filter(
      ({ file, source, issues }) =>
        !['agents', 'expressions', 'many'].includes(file) &&
        dataOf(source) !== undefined &&
        issues.some(({ message, path }) => OF_FORM.test(message) && !/config\.(?!routes)/.test(path)),
    );
    expect(shaped.length).toBeGreaterThanOrEqual(30);
    const taken = shaped.filter(({ source }) => validate(dataOf(source)));
    // What a schema without `$data` can't compare, the text around an expression, and the older form's routes under config.
    expect(taken.map(({ file, why }) => `${file}: ${why}`)).toEqual([
      'inputs: the default is not in the enum',
      'inputs: an enum that does not fit the type',
      'older-form: a Route whose routes under config are wrong',
      'steps: a `foreach` over mixed text',
    ]);
  });

  test('names steps of every kind at every depth', () => {
    const at = (step: unknown) => ({
      name: 'a',
      flow: [{ if: 'x', then: [{ foreach: [1], steps: [{ if: 'y', then: [], else: [step] }] }] }],
    });
    expect(validate(at({ agent: 'b' }))).toBe(true);
    expect(validate(at({ agent: 5 }))).toBe(false);
    expect(validate(at({ agnt: 'b' }))).toBe(false);
  });
});
