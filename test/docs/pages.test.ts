/** The pages of the documentation: their links are valid, and the README contains the commands that a new user types. */

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { brokenLinks } from '../package/markdown-links.ts';
import { markdownFiles, ROOT } from './code-blocks.ts';

const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');

describe('pages of the documentation', () => {
  it('link to existing files and headings', () => {
    expect(markdownFiles().flatMap((page) => brokenLinks(ROOT, page))).toEqual([]);
  });

  it('name only existing files of the project', () => {
    const named = markdownFiles().flatMap((path) =>
      [...read(path).matchAll(/`((?:src|test|docs|scripts|examples|\.ci)\/[\w./-]+)`/g)].map(([, file = '']) => ({
        path,
        file,
      })),
    );
    expect(named.length).toBeGreaterThan(20);
    expect(
      named.filter(({ file }) => !existsSync(join(ROOT, file))).map(({ path, file }) => `${path}: ${file}`),
    ).toEqual([]);
  });

  it('the README contains the two commands that a new user types, word for word', () => {
    const lines = read('README.md').split('\n');
    expect(lines.filter((line) => /^npm ci && npm start( -- --once)?$/.test(line))).not.toEqual([]);
    expect(lines).toContain('npm ci && npm test');
  });
});
