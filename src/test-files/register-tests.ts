/** Registers the tests of a project's test files with a test runner. */

import { readFile } from 'node:fs/promises';
import { relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { formatIssue } from '../engine/definition/source/definition-issue.ts';
import type { ProjectOptions } from '../project/load-project.ts';
import { openTests, testFilesOf } from './open-tests.ts';
import { type CreateForTest, describeWay, type TestResult } from './run-test.ts';
import { isPassed } from './run-test-files.ts';

/** The function of a test runner that registers one test: `test` of vitest, node:test or bun:test, or `Deno.test`. */
export type RegisterTest = (name: string, run: () => Promise<void>) => unknown;

export interface DefineTestsOptions extends ProjectOptions {
  /** Default: that of the runner in which the file is loaded. */
  readonly test?: RegisterTest | undefined;
}

/** @param create - creates a test orchestrator */
export async function registerTests(
  directory: string | URL,
  { test, ...app }: DefineTestsOptions,
  create: CreateForTest,
): Promise<void> {
  const register = test ?? (await currentRunner());
  const root = resolve(typeof directory === 'string' ? directory : fileURLToPath(directory));
  const files = await Promise.all(
    (await testFilesOf(root)).map(async (path) => ({
      file: relative(root, path).replaceAll('\\', '/'),
      text: await readFile(path, 'utf8'),
    })),
  );
  const tests = await openTests(root, files, { app, create });
  if ('issues' in tests) {
    register('the definitions have no problems', async () => {
      throw new Error(tests.issues.map(formatIssue).join('\n\n'));
    });
    return;
  }
  for (const { file, issues } of tests.broken)
    register(file, async () => {
      throw new Error(issues.map(formatIssue).join('\n\n'));
    });
  for (const { file, test: one, run } of tests.ready)
    register(`${file}: ${one.name}`, async () => {
      const result = await run();
      if (!isPassed(result)) throw new Error(describe(result));
    });
}

function describe(result: TestResult): string {
  const { differences, problems } = result;
  const lines = differences.map(({ path, expected, was }) => `${path}\n  - expected ${expected}\n  + was      ${was}`);
  return ['the execution is not as expected', ...problems, ...lines, describeWay(result)].join('\n');
}

/** The runner that has loaded the file. */
async function currentRunner(): Promise<RegisterTest> {
  const { Deno, Bun, process } = globalThis as {
    readonly Deno?: { readonly test: RegisterTest };
    readonly Bun?: object;
    readonly process?: { readonly env: Readonly<Record<string, string | undefined>> };
  };
  if (process?.env.VITEST) return ((await load('vitest')) as { readonly test: RegisterTest }).test;
  if (Bun) return ((await load('bun:test')) as { readonly test: RegisterTest }).test;
  if (Deno) return Deno.test;
  return ((await load('node:test')) as { readonly test: RegisterTest }).test;
}

// A name in a variable: a bundler must not look for the packages of other runners.
function load(name: string): Promise<unknown> {
  return import(name);
}
