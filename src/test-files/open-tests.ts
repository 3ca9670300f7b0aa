/** Opens a project to run its test files. */

import { join } from 'node:path';
import { type DefinitionIssue, OrchestratorError } from '../engine/base/errors.ts';
import { assumedValue } from '../engine/definition/compile/config/setting-text.ts';
import { compileHost } from '../orchestrator/create-orchestrator.ts';
import { isTestFile, listFiles } from '../project/list-files.ts';
import { openProject, type ProjectOptions } from '../project/load-project.ts';
import type { CreateForTest } from './run-test.ts';
import { type ReadTests, readTests, type TextOfFile } from './run-test-files.ts';

/**
 * The test files of a project, as absolute paths in a stable order.
 *
 * @param directory - absolute
 * @throws NOT_FOUND if there are none
 */
export async function testFilesOf(directory: string): Promise<string[]> {
  const folder = join(directory, 'ensembles');
  const names = await listFiles(folder, isTestFile, true);
  if (names.length > 0) return names.map((name) => join(folder, name));
  const remedy = 'write `NAME.test.yaml` next to `NAME.yaml`, with `ensemble` and `tests`';
  throw new OrchestratorError('NOT_FOUND', `${folder} has no test files: ${remedy}`);
}

export interface OpenTestsOptions {
  /** Options to add to those of the project. */
  readonly app?: ProjectOptions | undefined;
  /** Added to the URLs of scripts and config, so that they are loaded again. */
  readonly query?: string | undefined;
  readonly create: CreateForTest;
}

/**
 * Variables need no value: a test may have its own.
 *
 * @returns the tests, or the problems of the definitions
 * @throws NOT_FOUND
 */
export async function openTests(
  directory: string | URL,
  files: readonly TextOfFile[],
  { app = {}, query = '', create }: OpenTestsOptions,
): Promise<ReadTests | { readonly issues: readonly DefinitionIssue[] }> {
  const opened = await openProject(directory, app, { assumeVariables: true, lenient: true, query });
  const issues = opened.files.flatMap((file) => file.issues);
  if (issues.length > 0) return { issues };
  const { ensembles, agents } = opened.project;
  const texts = [...ensembles, ...agents].map(({ text }) => text);
  const { env = {}, secrets = {} } = opened.options;
  const read = texts.flatMap((text) => [...text.matchAll(VARIABLE)].map(([, name]) => name as string));
  const absent = read.filter((name) => !Object.hasOwn(env, name) && !Object.hasOwn(secrets, name));
  const assumed = Object.fromEntries(absent.map((name) => [name, assumedValue(name)]));
  const options = { ...opened.options, env: { ...assumed, ...env } };
  return readTests(files, options, { host: { ...compileHost(options), lenient: true }, create });
}

const VARIABLE = /\benv\.([A-Za-z_]\w*)/g;
