/**
 * Every example of the documentation is true: README.md, docs/, the examples' READMEs and the `@example`s of the source.
 *
 * | block | what is done with it |
 * |---|---|
 * | `ts` | type-checked, then run against the source; `console.log(...) // text` must print that text (`...` is anything) |
 * | `ts no-run` | type-checked |
 * | `yaml` with a `flow:` | must be a right ensemble |
 * | `yaml broken` | must be refused |
 * | with a file name behind the language (`yaml order.yaml`) | also written to a folder of its page; the page's programs read it by that name |
 * | any other | nothing |
 */

import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { formatWithOptions, inspect } from 'node:util';
import ts from 'typescript';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { isOrchestratorError, parseEnsemble } from '../../src/index.ts';
import { type CodeBlock, exampleBlocks, fencedBlocks, ROOT, readBlocks } from './code-blocks.ts';
import { PRINTER, printsAs, type Runnable, toRunnable } from './runnable.ts';

const GENERATED = join(ROOT, 'test/docs/.generated');

const blocks = readBlocks();
const programs = blocks.filter(({ language }) => language === 'ts').map(toRunnable);
const ensembles = blocks.filter(
  ({ language, marks, code }) => language === 'yaml' && (/^flow:/m.test(code) || marks.includes('broken')),
);
const fileOf = ({ at }: CodeBlock) => join(GENERATED, `${at.replace(/[^A-Za-z0-9]+/g, '-')}.ts`);
const pageOf = ({ at }: CodeBlock) => at.replace(/:\d+$/, '');
/** Blocks that name a file. */
const pageFiles = blocks.flatMap((block) =>
  block.marks
    .filter((mark) => mark.includes('.'))
    .map((name) => ({
      page: pageOf(block),
      name,
      path: join(GENERATED, pageOf(block).replace(/[^A-Za-z0-9]+/g, '-'), name),
      text: block.code,
    })),
);

/** The program with the names of its page's files as paths. */
function withPageFiles(text: string, block: CodeBlock): string {
  const own = pageFiles.filter(({ page }) => page === pageOf(block));
  return own.reduce((changed, { name, path }) => changed.replaceAll(`'${name}'`, JSON.stringify(path)), text);
}

beforeAll(() => {
  rmSync(GENERATED, { recursive: true, force: true });
  mkdirSync(GENERATED, { recursive: true });
  for (const { path, text } of pageFiles) {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  }
});
afterAll(() => rmSync(GENERATED, { recursive: true, force: true }));

/** Runs a block. @returns what was printed at each promise, call by call */
async function run({ block, text, expected }: Runnable): Promise<readonly (readonly string[])[]> {
  const printed: string[][] = expected.map(() => []);
  const format = (values: readonly unknown[]) =>
    formatWithOptions({ breakLength: Number.POSITIVE_INFINITY, depth: 6 }, ...values);
  const at =
    (i: number) =>
    (...values: unknown[]) =>
      void printed[i]?.push(format(values));
  const quiet = (['log', 'info', 'warn', 'error'] as const).map((method) =>
    vi.spyOn(console, method).mockImplementation(() => {}),
  );
  Object.assign(globalThis, { [PRINTER]: { at } });
  const file = fileOf(block);
  writeFileSync(file, withPageFiles(text, block));
  try {
    await import(/* @vite-ignore */ file);
  } finally {
    for (const spy of quiet) spy.mockRestore();
  }
  return printed;
}

describe('examples of the documentation', () => {
  it('are found', () => {
    expect(programs.length).toBeGreaterThan(3);
  });

  it('are well typed', () => {
    const config = ts.readConfigFile(join(ROOT, 'tsconfig.json'), ts.sys.readFile).config;
    const { options } = ts.parseJsonConfigFileContent({ ...config, include: [], files: [] }, ts.sys, ROOT);
    const sources = new Map(programs.map(({ block }) => [fileOf(block), `${block.code}\nexport {};\n`]));
    const host = ts.createCompilerHost(options);
    const { fileExists, readFile } = host;
    host.fileExists = (name) => sources.has(name) || fileExists(name);
    host.readFile = (name) => sources.get(name) ?? readFile(name);
    const checked = { ...options, noUnusedLocals: false, noUnusedParameters: false };
    const program = ts.createProgram({ rootNames: [...sources.keys()], options: checked, host });
    const problems = programs.flatMap(({ block }) => {
      const file = program.getSourceFile(fileOf(block));
      return ts.getPreEmitDiagnostics(program, file).map((problem) => {
        const line =
          file && problem.start !== undefined ? file.getLineAndCharacterOfPosition(problem.start).line + 1 : 0;
        return `${block.at} +${line}: ${ts.flattenDiagnosticMessageText(problem.messageText, ' ')}`;
      });
    });
    expect(problems).toEqual([]);
  }, 60_000);

  for (const program of programs.filter(({ block }) => !block.marks.includes('no-run'))) {
    it(`${program.block.at} runs and prints what it says`, async () => {
      const printed = await run(program);
      const wrong = program.expected.flatMap((expected, i) => {
        const lines = printed[i] ?? [];
        return lines.length > 0 && lines.every((line) => printsAs(expected, line))
          ? []
          : [{ expected, printed: lines }];
      });
      expect(wrong).toEqual([]);
    });
  }

  for (const { at, code, marks } of ensembles) {
    it(`${at} is ${marks.includes('broken') ? 'refused, as it is marked' : 'a right ensemble'}`, () => {
      let problem: string | undefined;
      try {
        parseEnsemble(code);
      } catch (error) {
        if (!isOrchestratorError(error, 'INVALID_DEFINITION')) throw error;
        problem = error.message;
      }
      if (marks.includes('broken')) expect(problem).toBeTypeOf('string');
      else expect(problem).toBeUndefined();
    });
  }
});

describe('how examples are read', () => {
  const block = (code: string): CodeBlock => ({ at: 'here:1', language: 'ts', marks: [], code });

  it('a fence in a list, its marks and its line', () => {
    const text = 'a\n- b\n  ```ts no-run\n  x();\n    y();\n  ```\n';
    expect(fencedBlocks('p.md', text)).toEqual([
      { at: 'p.md:3', language: 'ts', marks: ['no-run'], code: 'x();\n  y();\n' },
    ]);
    expect(() => fencedBlocks('p.md', '```ts\nx();\n')).toThrow('p.md:1: the code block has no end');
  });

  it('an @example in a comment, on its line; a block that stands before @example is no example', () => {
    const text = '\n/**\n * ```ts\n * no();\n * ```\n * @example\n * ```ts\n * yes(`\n *   x`);\n * ```\n */\n';
    expect(exampleBlocks('a.ts', text)).toEqual([{ at: 'a.ts:7', language: 'ts', marks: [], code: 'yes(`\n  x`);\n' }]);
  });

  it('what a console.log promises', () => {
    const code =
      "console.log(1); // 1\nconsole.log('//'); \nif (x) { console.log(\n  2,\n); } // 2 'b'\nconsole.log(3)\n// not a promise\n";
    expect(toRunnable(block(code)).expected).toEqual(['1', "2 'b'"]);
  });

  it('a promise that is broken, kept with other spaces, kept with `...`, or never called', async () => {
    expect(await run(toRunnable(block('console.log({ a: 1 }, "x"); // y\nif (false) console.log(2); // 2')))).toEqual([
      ['{ a: 1 } x'],
      [],
    ]);
    expect(printsAs('{ a: 1 } x', `${inspect({ a: 1 }, { compact: false })} x`)).toBe(true);
    expect(printsAs('exec_... done', 'exec_01 done')).toBe(true);
    expect(printsAs('exec_... done', 'exec_01 done.')).toBe(false);
    expect(printsAs('a.b', 'axb')).toBe(false);
  });
});
