/**
 * Every example of the documentation works: README.md, docs/, the READMEs of the examples, and each `@example` of the source.
 *
 * | block | check |
 * |---|---|
 * | `ts` | type-checked, then run against the source; `console.log(...) // text` must print that text (`...` is anything) |
 * | `ts no-run` | type-checked |
 * | `yaml` with a `flow:` | must be a valid ensemble |
 * | `yaml broken` | must be refused, with what a `text` block after it says |
 * | with a file name after the language (`yaml order.yaml`) | also written to a folder of its page; the programs of the page read it by that name, and import it (`ts store.ts`) |
 * | any other | none |
 */

import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { formatWithOptions, inspect } from 'node:util';
import ts from 'typescript';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { formatIssue } from '../../src/engine/definition/source/definition-issue.ts';
import { isOrchestratorError, parseEnsemble } from '../../src/index.ts';
import { compileHost } from '../../src/orchestrator/create-orchestrator.ts';
import { checkEnsemble } from '../../src/orchestrator/definitions/load-definitions.ts';
import { type CodeBlock, exampleBlocks, fencedBlocks, ROOT, readBlocks } from './code-blocks.ts';
import { PRINTER, type Program, printsAs, toProgram } from './runnable.ts';

const GENERATED = join(ROOT, 'test/docs/.generated');

const blocks = readBlocks();
const programs = blocks.filter(({ language }) => language === 'ts').map(toProgram);
const ensembles = blocks.filter(
  ({ language, marks, code }) => language === 'yaml' && (/^flow:/m.test(code) || marks.includes('broken')),
);
const pageOf = ({ at }: CodeBlock) => at.replace(/:\d+$/, '');
const folderOf = (block: CodeBlock) => join(GENERATED, pageOf(block).replace(/[^A-Za-z0-9]+/g, '-'));
const fileOf = (block: CodeBlock) => join(folderOf(block), `line-${block.at.replace(/^.*:/, '')}.ts`);
/** Files that blocks name. */
const pageFiles = blocks.flatMap((block) =>
  block.marks
    .filter((mark) => mark.includes('.'))
    .map((name) => ({
      page: pageOf(block),
      name,
      path: join(folderOf(block), name),
      text: block.code,
    })),
);

/** What the page says about a broken ensemble: the `text` that comes next on it. */
function printed(block: CodeBlock): string {
  const next = blocks[blocks.indexOf(block) + 1];
  return next?.language === 'text' && pageOf(next) === pageOf(block) ? next.code.trim() : '';
}

/** Replaces the names of the page's files by their paths. */
function withPageFiles(text: string, block: CodeBlock): string {
  const own = pageFiles.filter(({ page }) => page === pageOf(block));
  const named = own.reduce((changed, { name, path }) => changed.replaceAll(`'${name}'`, JSON.stringify(path)), text);
  // A database that an example opens is deleted with the examples.
  return named.replace(/(?<=path: )'([\w-]+\.db)'/g, (_, file: string) => JSON.stringify(join(folderOf(block), file)));
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

/** Runs a block. @returns for each promise, the output of each call */
async function run({ block, text, expected }: Program): Promise<readonly (readonly string[])[]> {
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
  mkdirSync(dirname(file), { recursive: true });
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
    for (const { path, text } of pageFiles) if (path.endsWith('.ts')) sources.set(path, text);
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
    it(`${program.block.at} runs and prints the promised output`, async () => {
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

  for (const block of ensembles) {
    const { at, code, marks } = block;
    it(`${at} is ${marks.includes('broken') ? 'refused' : 'a valid ensemble'}`, () => {
      let problem: string | undefined;
      try {
        parseEnsemble(code);
        // An app brings the scripts and the bindings.
        const scripts = Object.fromEntries(
          [...code.matchAll(/script: ([\w-]+)/g)].map(([, name]) => [name, () => null]),
        );
        const host = { ...compileHost({ ensembles: [], scripts } as never), lenient: true };
        const { issues } = checkEnsemble(code, host);
        if (issues.length > 0) problem = issues.map(formatIssue).join('\n\n');
      } catch (error) {
        if (!isOrchestratorError(error, 'INVALID_DEFINITION')) throw error;
        problem = error.message;
      }
      if (!marks.includes('broken')) expect(problem).toBeUndefined();
      else expect(problem).toContain(printed(block));
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
    expect(() => fencedBlocks('p.md', '```ts\nx();\n')).toThrow('p.md:1: the code block is not closed');
  });

  it('an @example in a comment, with its line; a block before @example is not an example', () => {
    const text = '\n/**\n * ```ts\n * no();\n * ```\n * @example\n * ```ts\n * yes(`\n *   x`);\n * ```\n */\n';
    expect(exampleBlocks('a.ts', text)).toEqual([{ at: 'a.ts:7', language: 'ts', marks: [], code: 'yes(`\n  x`);\n' }]);
  });

  it('the promised output of each console.log', () => {
    const code =
      "console.log(1); // 1\nconsole.log('//'); \nif (x) { console.log(\n  2,\n); } // 2 'b'\nconsole.log(3)\n// not a promise\n";
    expect(toProgram(block(code)).expected).toEqual(['1', "2 'b'"]);
  });

  it('broken promises, different spaces, `...`, and calls that never happen', async () => {
    expect(await run(toProgram(block('console.log({ a: 1 }, "x"); // y\nif (false) console.log(2); // 2')))).toEqual([
      ['{ a: 1 } x'],
      [],
    ]);
    expect(printsAs('{ a: 1 } x', `${inspect({ a: 1 }, { compact: false })} x`)).toBe(true);
    expect(printsAs('exec_... done', 'exec_01 done')).toBe(true);
    expect(printsAs('exec_... done', 'exec_01 done.')).toBe(false);
    expect(printsAs('a.b', 'axb')).toBe(false);
  });
});
