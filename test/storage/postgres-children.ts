/** Separate processes for the tests of Postgres: `postgres-child.ts`, built once for each test file. */

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll } from 'vitest';
import { buildChild } from '../build-child.ts';
import { until } from './postgres-server.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
// Packages can be resolved from this folder, and git ignores it.
const FOLDER = join(ROOT, 'node_modules/.cache/ensemble-orchestrator', `postgres-${process.pid}`);
const CHILD = join(FOLDER, 'postgres-child.mjs');
const started = new Set<ChildProcess>();

/** @param source - the file that they run, from the root of the repository */
export function buildChildren(source = 'test/storage/postgres-child.ts'): void {
  beforeAll(async () => {
    mkdirSync(FOLDER, { recursive: true });
    await buildChild(source, CHILD);
  });
  afterAll(() => {
    for (const child of started) child.kill('SIGKILL');
    rmSync(FOLDER, { recursive: true, force: true });
  });
}

export interface Child {
  readonly lines: readonly string[];
  /** Waits until the process has printed a line. */
  said(line: string): Promise<void>;
  signal(signal: NodeJS.Signals): void;
  /** Kills the process, as a crash would, and waits until it is gone. */
  kill(): Promise<void>;
}

export function startChild(...args: readonly string[]): Child {
  const child = spawn(process.execPath, ['--no-warnings', CHILD, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  started.add(child);
  const gone = new Promise<void>((resolve) =>
    child.on('close', () => {
      started.delete(child);
      resolve();
    }),
  );
  const lines: string[] = [];
  let rest = '';
  child.stdout.setEncoding('utf8').on('data', (part: string) => {
    const found = (rest + part).split('\n');
    rest = found.pop() ?? '';
    lines.push(...found);
  });
  return {
    lines,
    said: (line) => until(() => lines.includes(line), `the child to say ${line}`),
    signal: (signal) => void child.kill(signal),
    async kill() {
      child.kill('SIGKILL');
      await gone;
    },
  };
}
