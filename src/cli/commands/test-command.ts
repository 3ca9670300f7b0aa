/** `ensemble test`: runs the test files of a project. */

import { readFile } from 'node:fs/promises';
import { basename, dirname, resolve } from 'node:path';
import { printReport, toJunit } from '../progress/test-report.ts';
import { requireProject } from '../project/find-target.ts';
import { openApp } from '../project/open-app.ts';
import { printIssue } from '../project/print-issues.ts';
import { type PlaceOptions, withService } from '../service/open-service.ts';
import type { ServiceHost } from '../service/service.ts';
import { watchFiles } from '../service/watch-files.ts';
import {
  childrenOf,
  isTestFile,
  maskOf,
  openToTest,
  type ReadTests,
  recordTest,
  runTestFiles,
  showPath,
  type TextOfFile,
  testFilesOf,
} from '../start.ts';
import { CliError, wrongUsage } from '../terminal/cli-error.ts';
import { onInterrupt } from '../terminal/interrupt.ts';
import type { Output } from '../terminal/output.ts';
import { printJson } from '../terminal/text.ts';

export interface TestOptions extends PlaceOptions {
  /** A module with the options of an app. */
  readonly app?: string;
  readonly watch?: boolean;
  /** Also prints the steps that no test ran. */
  readonly coverage?: boolean;
  readonly reporter?: string;
  /** The id of an execution from which a test is written. */
  readonly record?: string;
  /** Names of fields whose values are not written. */
  readonly redact?: readonly string[];
}

const REPORTERS = ['text', 'json', 'junit'];

/** @returns the exit code */
export async function test(
  paths: readonly string[],
  options: TestOptions,
  output: Output,
  { cwd, process }: { readonly cwd: string; readonly process: NodeJS.Process },
): Promise<number> {
  const { reporter = 'text' } = options;
  if (options.record !== undefined) return record(options.record, options, output, { cwd, process });
  if (options.redact?.length) throw wrongUsage('--redact is for --record, which prints a test of a real execution');
  if (!REPORTERS.includes(reporter)) throw wrongUsage(`--reporter must be ${REPORTERS.join(', ')}, not ${reporter}`);
  const directory = await projectOf(paths, options, cwd);
  output.capture();
  if (!options.watch) return runOnce(paths, directory, options, output, cwd);
  await runOnce(paths, directory, options, output, cwd).catch(say(output));
  const stop = await watchFiles(directory, async () => {
    output.say('\n');
    await runOnce(paths, directory, options, output, cwd, `?${Date.now()}`).catch(say(output));
  });
  const exitCode = await new Promise<number>((resolve) => {
    const interrupt = onInterrupt(process, () => resolve(interrupt.exitCode ?? 0));
  });
  await stop();
  return exitCode;
}

/** Prints a test file for a real execution. */
async function record(id: string, options: TestOptions, output: Output, host: ServiceHost): Promise<number> {
  const { redact = [], dir = '.' } = options;
  const mask = await maskOf(resolve(host.cwd, dir));
  const histories = await withService(options, host, async ({ executions }) => {
    const all = [await executions.history(id)];
    for (const one of all) for (const child of childrenOf(one)) all.push(await executions.history(child));
    return all;
  });
  const [history, ...children] = histories;
  if (history?.end === undefined) throw new CliError(`execution ${id} has not ended; a test needs its end`);
  output.print(recordTest(history, { children, redact, mask }));
  return 0;
}

function say(output: Output) {
  return (error: unknown) => output.say(`${error instanceof Error ? error.message : String(error)}\n`);
}

async function runOnce(
  paths: readonly string[],
  directory: string,
  { app, reporter, coverage = false }: TestOptions,
  output: Output,
  cwd: string,
  query = '',
): Promise<number> {
  const files = await readFiles(paths, directory, cwd);
  const tests = await openToTest(directory, files, app === undefined ? {} : await openApp(app, cwd, directory), query);
  if ('issues' in tests) {
    for (const issue of tests.issues) output.say(`${printIssue(issue, output.colors)}\n\n`);
    output.say(`${output.colors.red('✗')} the definitions have problems; no test ran\n`);
    return 1;
  }
  const report = await runTestFiles(tests as ReadTests);
  if (reporter === 'json') output.print(`${printJson(report)}\n`);
  else if (reporter === 'junit') output.printRaw(toJunit(report));
  else printReport(report, coverage, output);
  return report.failed > 0 ? 1 : 0;
}

/** The project of the test files: that of `--dir`, or the folder around `ensembles`. */
async function projectOf(paths: readonly string[], { dir, app }: TestOptions, cwd: string): Promise<string> {
  if (dir !== undefined) return requireProject(cwd, dir);
  const folders = new Set(paths.map((path) => dirname(resolve(cwd, path))).map(projectFolder));
  const [folder, second] = [...folders];
  if (second !== undefined) throw wrongUsage('the files belong to several projects; name one project with --dir');
  if (folder !== undefined && folder !== '') return folder;
  return app === undefined ? requireProject(cwd, undefined) : cwd;
}

function projectFolder(folder: string): string {
  return basename(folder) === 'ensembles' ? dirname(folder) : '';
}

async function readFiles(paths: readonly string[], directory: string, cwd: string): Promise<TextOfFile[]> {
  const found = paths.length > 0 ? paths.map((path) => resolve(cwd, path)) : await testFilesOf(directory);
  return Promise.all(
    found.map(async (path) => {
      const file = showPath(cwd, path);
      if (!isTestFile(path)) throw wrongUsage(`${file} is not a test file: its name must end with .test.yaml`);
      const text = await readFile(path, 'utf8').catch((error: Error) => {
        throw new CliError(`${file} can't be read: ${error.message}`);
      });
      return { file, text };
    }),
  );
}
