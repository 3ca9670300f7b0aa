/** Separate processes for the tests of SQLite: `sqlite-child.ts`, built once for each test file. */

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll } from 'vitest';
import { buildChild } from '../build-child.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
// Packages can be resolved from this folder, and git ignores it.
const FOLDER = join(ROOT, 'node_modules/.cache/ensemble-orchestrator', String(process.pid));
const CHILD = join(FOLDER, 'sqlite-child.mjs');
const started = new Set<ChildProcess>();

/** @param source - the file that they run, from the root of the repository */
export function buildChildren(source = 'test/storage/sqlite-child.ts'): void {
  beforeAll(async () => {
    mkdirSync(FOLDER, { recursive: true });
    await buildChild(source, CHILD);
  });
  afterAll(() => {
    for (const child of started) child.kill('SIGKILL');
    rmSync(FOLDER, { recursive: true, force: true });
  });
}

export function startChild(...args: readonly string[]): ChildProcess {
  const child = spawn(process.execPath, ['--no-warnings', CHILD, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  started.add(child);
  child.on('close', () => started.delete(child));
  return child;
}

/** Waits until a child ends, or kills it after `killAfter` lines. @returns the complete lines that it printed */
export function finish(
  child: ChildProcess,
  killAfter = Number.POSITIVE_INFINITY,
): Promise<{ lines: string[]; code: number | null; errors: string }> {
  return new Promise((resolve) => {
    let [text, errors, count] = ['', '', 0];
    child.stdout?.setEncoding('utf8').on('data', (part: string) => {
      text += part;
      count += part.split('\n').length - 1;
      if (count >= killAfter) child.kill('SIGKILL');
    });
    child.stderr?.setEncoding('utf8').on('data', (part: string) => {
      errors += part;
    });
    child.on('close', (code) => resolve({ lines: text.split('\n').slice(0, -1), code, errors }));
  });
}

/** The first line that a child prints. */
export function firstLine(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let [text, errors] = ['', ''];
    child.stdout?.setEncoding('utf8').on('data', (part: string) => {
      text += part;
      if (text.includes('\n')) resolve(text.slice(0, text.indexOf('\n')));
    });
    child.stderr?.setEncoding('utf8').on('data', (part: string) => {
      errors += part;
    });
    child.on('close', () => reject(new Error(`the process ended without output: ${errors}`)));
  });
}

/** Kills a child, as a crash would, and waits until it is gone. */
export async function kill(child: ChildProcess): Promise<void> {
  const gone = new Promise((resolve) => child.on('exit', resolve));
  child.kill('SIGKILL');
  await gone;
}
