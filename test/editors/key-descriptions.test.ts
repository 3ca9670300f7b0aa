/** What an editor shows over a key is what the documentation's tables say about it. */

import { join } from 'node:path';
import { expect, test } from 'vitest';
import { definitionSchema } from '../../src/cli/schema/definition-schema.ts';
import { KEY_DESCRIPTIONS } from '../../src/cli/schema/key-descriptions.ts';
import { compileHost } from '../../src/orchestrator/create-orchestrator.ts';
import { ROOT } from '../architecture/source-graph.ts';
import { readTables } from './read-tables.ts';

type Schema = Readonly<Record<string, unknown>>;

const FILE = join(ROOT, 'src/cli/schema/key-descriptions.ts');

test('the descriptions are those of the tables; after a change there: npx vitest run test/editors/key-descriptions.test.ts -u', async () => {
  await expect(render(readTables())).toMatchFileSnapshot(FILE);
});

test('each key of each form has a row in a table', () => {
  expect(keysOf(definitionSchema(compileHost({}).operations)).filter(({ text }) => text === undefined)).toEqual([]);
});

test('each row of the tables is about a key of its form', () => {
  const shown = new Set(keysOf(definitionSchema(compileHost({}).operations)).map(({ text }) => text));
  const unused = Object.entries(KEY_DESCRIPTIONS).flatMap(([form, keys]) =>
    Object.entries(keys).flatMap(([key, text]) => (shown.has(text) ? [] : [`${form}: ${key}`])),
  );
  expect(unused).toEqual([]);
});

// The keywords of a JSON Schema for inputs are not keys of the language.
function keysOf(schema: Schema, path = ''): { readonly path: string; readonly text: unknown }[] {
  if (path.endsWith('/inputSchema')) return [];
  return Object.entries(schema).flatMap(([keyword, inner]) => {
    if (typeof inner !== 'object' || inner === null || keyword === 'if' || keyword === 'dependencies') return [];
    const entries = Object.entries(inner as Record<string, Schema>);
    if (keyword === 'properties') {
      return entries.flatMap(([key, value]) => {
        const at = `${path}/${key}`;
        // A rule about a key that another schema of the same map describes.
        const isRule = Object.keys(value).every((inner) => ['$ref', 'const', 'doNotSuggest'].includes(inner));
        return [...(isRule ? [] : [{ path: at, text: value.description }]), ...keysOf(value, at)];
      });
    }
    return keyword === 'definitions'
      ? entries.flatMap(([name, value]) => keysOf(value, `${path}/${name}`))
      : keysOf(inner as Schema, path);
  });
}

function render(descriptions: ReturnType<typeof readTables>): string {
  const forms = Object.entries(descriptions).map(([form, keys]) => {
    const lines = Object.entries(keys).map(([key, text]) => `    ${name(key)}: ${quote(text)},`);
    return `  ${name(form)}: {\n${lines.join('\n')}\n  },\n`;
  });
  return `/** What the documentation's tables say about each key, by form. Written by test/editors/key-descriptions.test.ts. */

// biome-ignore format: one line for each key
export const KEY_DESCRIPTIONS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
${forms.join('')}};
`;
}

function name(key: string): string {
  return /^\w+$/.test(key) ? key : quote(key);
}

function quote(text: string): string {
  return text.includes("'") && !text.includes('"') ? `"${text}"` : `'${text.replace(/['\\]/g, '\\$&')}'`;
}
