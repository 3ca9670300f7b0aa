/** How large the code may be. Only a decision in `docs/decisions/` raises one of these numbers; a change that lowers one lowers it here too. */

import { readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { readSourceGraph } from './source-graph.ts';

const graph = readSourceGraph();
const SRC = fileURLToPath(new URL('../../src/', import.meta.url));

/** The most files and folders in one folder. */
const MAX_ENTRIES = 20;
/** Folders with more, each with its reason. */
const LARGER: Readonly<Record<string, string>> = {
  entries: 'one file for each entry of the package',
  'cli/commands': 'one file for each command',
};
/** The most files of the product that know one field of an execution: `retryOf`, which goes the whole way from storage to screen. */
const MAX_FILES_OF_A_FIELD = 12;
/** The most lines of the product, without the suites for authors of adapters. */
const MAX_LINES = 113_000;

const isProduct = (path: string) => !path.startsWith('conformance/');

describe('the size of the code', () => {
  it(`a folder has at most ${MAX_ENTRIES} entries, except those with a reason`, () => {
    const folders = new Set([...graph.keys()].flatMap(parentsOf));
    const large = [...folders].filter((folder) => readdirSync(join(SRC, folder)).length > MAX_ENTRIES);
    expect(large.filter((folder) => !(folder in LARGER))).toEqual([]);
    expect(Object.keys(LARGER).filter((folder) => !large.includes(folder))).toEqual([]);
  });

  it(`at most ${MAX_FILES_OF_A_FIELD} files know a field of an execution`, () => {
    const files = [...graph.values()].filter(({ path, text }) => isProduct(path) && /\bretryOf\b/.test(text));
    expect(files.length, files.map(({ path }) => path).join('\n')).toBeLessThanOrEqual(MAX_FILES_OF_A_FIELD);
  });

  it(`the product has at most ${MAX_LINES} lines`, () => {
    const files = [...graph.values()].filter(({ path }) => isProduct(path));
    const lines = files.reduce((sum, { text }) => sum + text.split('\n').length - 1, 0);
    expect(lines).toBeLessThanOrEqual(MAX_LINES);
  });
});

function parentsOf(path: string): string[] {
  const folder = dirname(path);
  return folder === '.' ? [] : [folder, ...parentsOf(folder)];
}
