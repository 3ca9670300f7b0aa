/** The documentation's pages: their links lead somewhere, and the README holds the lines that a new user types. */

import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { markdownFiles, ROOT } from './code-blocks.ts';

const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');

/** The anchors of a page, as code hosts make them from headings. */
function anchors(text: string): readonly string[] {
  return [...text.matchAll(/^#{1,6} (.*)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replace(/ /g, '-'),
  );
}

/** Links of a page that lead nowhere. */
function brokenLinks(path: string): readonly string[] {
  const text = read(path).replace(/^```[\s\S]*?^```/gm, '');
  return [...text.matchAll(/\]\(([^)\s]+)\)/g)].flatMap(([, link = '']) => {
    if (/^[a-z]+:/.test(link)) return [];
    const [target = '', anchor] = link.split('#');
    const file = target === '' ? path : join(dirname(path), target);
    if (!existsSync(join(ROOT, file))) return [`${path}: ${link}`];
    const known = anchor === undefined || !file.endsWith('.md') || anchors(read(file)).includes(anchor);
    return known ? [] : [`${path}: ${link}`];
  });
}

describe('pages of the documentation', () => {
  it('link to files and headings that are there', () => {
    expect(markdownFiles().flatMap(brokenLinks)).toEqual([]);
  });

  it('name only files of the project that are there', () => {
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

  it('the README holds the two lines that a new user types, word for word', () => {
    const lines = read('README.md').split('\n');
    expect(lines.filter((line) => /^npm ci && npm start( -- --once)?$/.test(line))).not.toEqual([]);
    expect(lines).toContain('npm ci && npm test');
  });
});
