/** ARCHITECTURE.md stays short, and every file and function that it names is there. */

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ROOT } from './code-blocks.ts';

const MAX_WORDS = 2_000;
/** The rows of the table of changes and the walks. */
const MIN_ROWS = 30;
const WALKS = 10;

const page = readFileSync(join(ROOT, 'ARCHITECTURE.md'), 'utf8');
const toFile = (name: string) => join(ROOT, /^(src|test|docs|scripts|examples)\//.test(name) ? name : `src/${name}`);
const section = (title: string) => page.split(/^## /m).find((text) => text.startsWith(title)) ?? '';

describe('ARCHITECTURE.md', () => {
  it(`has at most ${MAX_WORDS} words`, () => {
    expect(page.split(/\s+/).filter(Boolean).length).toBeLessThanOrEqual(MAX_WORDS);
  });

  it('names only files and folders that are there', () => {
    const named = [...page.matchAll(/`([\w-]+(?:\/[\w.-]+)*\/(?:[\w.-]+\.tsx?)?|[\w.-]+\.ts)`/g)].map(
      ([, name = '']) => name,
    );
    expect(named.length).toBeGreaterThan(80);
    expect(named.filter((name) => !existsSync(toFile(name)))).toEqual([]);
  });

  it(`leads from at least ${MIN_ROWS} changes to the files in which they begin`, () => {
    const rows = section('I want to change X')
      .split('\n')
      .filter((line) => /^\| [^-|]/.test(line))
      .slice(1);
    expect(rows.length).toBeGreaterThanOrEqual(MIN_ROWS);
    expect(rows.filter((row) => !/\| `[\w./-]+\.tsx?`/.test(row))).toEqual([]);
  });

  it(`walks ${WALKS} ways, and each function is declared in the file before it`, () => {
    const walks = section('Ten walks').split(/^\*\*/m).slice(1);
    expect(walks.length).toBe(WALKS);
    const missing = walks.flatMap((walk) => walk.split('\n').flatMap(missingFunctions));
    expect(missing).toEqual([]);
  });
});

/** The functions of one line of a walk that the file named last does not declare. */
function missingFunctions(line: string): string[] {
  let file = '';
  let text = '';
  return [...line.matchAll(/`([^`]+)`/g)].flatMap(([, name = '']) => {
    if (/\.tsx?$/.test(name)) {
      file = name;
      text = readFileSync(toFile(name), 'utf8');
      return [];
    }
    const declared = new RegExp(`(function|class|const) ${name}\\b|^ +(async )?${name}[(<:]`, 'm');
    return /^[A-Za-z]+$/.test(name) && text !== '' && !declared.test(text) ? [`${file} ${name}`] : [];
  });
}
