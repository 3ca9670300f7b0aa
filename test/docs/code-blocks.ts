/** Finds the code blocks of the documentation: fenced in Markdown, and after `@example` in comments of the source. */

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('../../', import.meta.url));

export interface CodeBlock {
  /** `docs/testing.md:12`: the file and the line of the opening fence. */
  readonly at: string;
  /** `ts`, `yaml`, ... */
  readonly language: string;
  /** The words after the language: `no-run`, `broken`. */
  readonly marks: readonly string[];
  readonly code: string;
}

/** The Markdown files of the project: the pages at the root, `docs/` without generated pages, and the READMEs of the examples. */
export function markdownFiles(): readonly string[] {
  const under = (folder: string) =>
    existsSync(join(ROOT, folder))
      ? readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' }).map(
          (path) => `${folder}/${path.split(sep).join('/')}`,
        )
      : [];
  return [...readdirSync(ROOT), ...under('docs'), ...under('examples')]
    .filter((path) => path.endsWith('.md') && !path.startsWith('docs/api/') && !path.includes('node_modules/'))
    .sort();
}

export function readBlocks(): readonly CodeBlock[] {
  const sources = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts'))
    .map((path) => `src/${path.split(sep).join('/')}`)
    .sort();
  return [
    ...markdownFiles().flatMap((path) => fencedBlocks(path, readFileSync(join(ROOT, path), 'utf8'))),
    ...sources.flatMap((path) => exampleBlocks(path, readFileSync(join(ROOT, path), 'utf8'))),
  ];
}

/** @param prefix - what precedes each line in a comment */
export function fencedBlocks(path: string, text: string, prefix = /^/): readonly CodeBlock[] {
  const blocks: CodeBlock[] = [];
  let open:
    | {
        readonly indent: string;
        readonly fence: string;
        readonly info: string;
        readonly line: number;
        readonly lines: string[];
      }
    | undefined;
  text.split('\n').forEach((raw, i) => {
    const line = raw.replace(prefix, '');
    if (!open) {
      const [, indent, fence, info] = /^(\s*)(`{3,})\s*([^`]*)$/.exec(line) ?? [];
      if (fence !== undefined) open = { indent: indent ?? '', fence, info: info ?? '', line: i + 1, lines: [] };
    } else if (line.trim() === open.fence) {
      const [language = '', ...marks] = open.info.trim().split(/\s+/);
      blocks.push({ at: `${path}:${open.line}`, language, marks, code: `${open.lines.join('\n')}\n` });
      open = undefined;
    } else open.lines.push(line.startsWith(open.indent) ? line.slice(open.indent.length) : line.trimStart());
  });
  if (open) throw new Error(`${path}:${open.line}: the code block is not closed`);
  return blocks;
}

/** The blocks of `/** ... *\/` comments that contain an `@example`. */
export function exampleBlocks(path: string, text: string): readonly CodeBlock[] {
  const blocks: CodeBlock[] = [];
  for (const comment of text.matchAll(/\/\*\*[\s\S]*?\*\//g)) {
    const at = comment[0].indexOf('@example');
    if (at < 0) continue;
    const before = text.slice(0, comment.index + at).split('\n').length - 1;
    // The lines before the comment are kept as empty lines, so that line numbers are those of the file.
    blocks.push(...fencedBlocks(path, '\n'.repeat(before) + comment[0].slice(at), /^\s*\* ?/));
  }
  return blocks;
}
