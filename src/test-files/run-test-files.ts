/** Runs the tests of several test files, one after the other. */

import pLimit from 'p-limit';
import type { DefinitionIssue } from '../engine/base/errors.ts';
import type { CompileHost } from '../engine/definition/compile/triggers/compile-host.ts';
import type { ParsedEnsemble } from '../engine/definition/read/parse-ensemble.ts';
import type { OrchestratorOptions } from '../orchestrator/options/options.ts';
import { type Coverage, coverageOf } from './coverage.ts';
import { readTestFile, type TestFile, testedEnsembles } from './read-test-file.ts';
import { type CreateForTest, createRunner, type TestResult } from './run-test.ts';
import type { FlowTest } from './test-form.ts';

export interface TextOfFile {
  /** How people know it. */
  readonly file: string;
  readonly text: string;
}

/** The result of a test file. A file with problems has no tests. */
export interface TestFileResult {
  readonly file: string;
  readonly ensemble: string;
  readonly issues: readonly DefinitionIssue[];
  readonly tests: readonly TestResult[];
}

export interface TestReport {
  readonly files: readonly TestFileResult[];
  readonly passed: number;
  /** Tests that failed, and files with problems. */
  readonly failed: number;
  /** Of each ensemble that a test file names. */
  readonly coverage: readonly Coverage[];
}

/** A test that a runner can run by itself. */
export interface ReadyTest {
  readonly file: string;
  readonly ensemble: string;
  readonly test: FlowTest;
  run(): Promise<TestResult>;
}

export interface ReadTests {
  readonly ready: readonly ReadyTest[];
  readonly broken: readonly TestFileResult[];
  coverage(results: readonly TestResult[]): Coverage[];
}

export function readTests(
  files: readonly TextOfFile[],
  options: OrchestratorOptions,
  { host, create }: { readonly host: CompileHost; readonly create: CreateForTest },
): ReadTests {
  const tested = testedEnsembles(options.ensembles ?? [], host);
  const ready: ReadyTest[] = [];
  const broken: TestFileResult[] = [];
  const named = new Set<string>();
  // A test replaces `fetch` while it runs, so that a runner which begins several at once has to wait.
  const inTurn = pLimit(1);
  for (const { file, text } of files) {
    const read = readTestFile(text, file, tested);
    if ('issues' in read) {
      broken.push({ file, ensemble: '', issues: read.issues, tests: [] });
      continue;
    }
    const { ensemble, tests, sources }: TestFile = read.file;
    named.add(ensemble);
    const run = createRunner(ensemble, sources, options, create);
    for (const test of tests) ready.push({ file, ensemble, test, run: () => inTurn(run, test) });
  }
  return {
    ready,
    broken,
    coverage: (results) => {
      const ran = results.flatMap((one) => one.ran);
      return [...named].map((name) => coverageOf((tested.definitions.get(name) as ParsedEnsemble).definition, ran));
    },
  };
}

export async function runTestFiles({ ready, broken, coverage }: ReadTests): Promise<TestReport> {
  const files = new Map<string, { ensemble: string; tests: TestResult[] }>();
  for (const { file, ensemble, run } of ready) {
    const found = files.get(file) ?? { ensemble, tests: [] };
    files.set(file, found);
    found.tests.push(await run());
  }
  const results = [...files.values()].flatMap(({ tests }) => tests);
  const passed = results.filter(isPassed).length;
  return {
    files: [...[...files].map(([file, one]) => ({ file, ...one, issues: [] })), ...broken],
    passed,
    failed: results.length - passed + broken.length,
    coverage: coverage(results),
  };
}

export function isPassed({ differences, problems }: TestResult): boolean {
  return differences.length === 0 && problems.length === 0;
}
