/** Runs the built command in a separate process, on temporary files. */

import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url)).replace(/[/\\]$/, '');
export const CLI = join(ROOT, 'dist/cli.js');

/** Builds the package if it is not built. `npm test` builds it first, but a single test file may run without a build. */
export async function ensureBuilt(): Promise<void> {
  const built = () =>
    ['cli.js', 'index.js', 'node.js', 'testing.js'].every((file) => existsSync(join(ROOT, 'dist', file)));
  if (built()) return;
  // Test files run in parallel: the first one builds, the others wait for it.
  const lock = join(tmpdir(), `ensemble-orchestrator-build-${process.ppid}`);
  try {
    mkdirSync(lock);
  } catch {
    for (let attempt = 0; !built() && attempt < 600; attempt++) await wait(100);
    return;
  }
  const done = spawnSync(process.execPath, [join(ROOT, 'node_modules/tsup/dist/cli-default.js'), '--no-dts'], {
    cwd: ROOT,
    encoding: 'utf8',
  });
  rmSync(lock, { recursive: true });
  if (done.status !== 0) throw new Error(`the build failed:\n${done.stdout}${done.stderr}`);
}

/** A folder with these files, removed after the test. Its files can import the package and zod by name, as after `npm install`. */
export function makeFolder(files: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(join(tmpdir(), 'ensemble-cli-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  mkdirSync(join(folder, 'node_modules'));
  symlinkSync(ROOT, join(folder, 'node_modules/ensemble-orchestrator'), 'dir');
  symlinkSync(join(ROOT, 'node_modules/zod'), join(folder, 'node_modules/zod'), 'dir');
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  return folder;
}

export interface Ran {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface CliOptions {
  readonly cwd?: string;
  readonly stdin?: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** Runs `ensemble` to its end, without variables that would colour its output. */
export async function ensemble(args: readonly string[], options: CliOptions = {}): Promise<Ran> {
  const started = startEnsemble(args, options);
  started.child.stdin?.end(options.stdin ?? '');
  return started.ended;
}

export interface Started {
  readonly child: ChildProcess;
  readonly ended: Promise<Ran>;
  /** Resolves when stderr contains the text. */
  saw(text: string): Promise<void>;
}

export function startEnsemble(args: readonly string[], { cwd = ROOT, env = {} }: CliOptions = {}): Started {
  const { PATH, HOME } = process.env;
  const child = spawn(process.execPath, [CLI, ...args], { cwd, env: { PATH, HOME, ...env } as NodeJS.ProcessEnv });
  let stdout = '';
  let stderr = '';
  const waiting: { readonly text: string; readonly resolve: () => void }[] = [];
  child.stdout.on('data', (chunk) => {
    stdout += chunk;
  });
  child.stderr.on('data', (chunk) => {
    stderr += chunk;
    for (const { text, resolve } of waiting) if (stderr.includes(text)) resolve();
  });
  const ended = new Promise<Ran>((resolve) => child.on('close', (code) => resolve({ code, stdout, stderr })));
  return {
    child,
    ended,
    saw: (text) =>
      new Promise((resolve) => {
        if (stderr.includes(text)) resolve();
        else waiting.push({ text, resolve });
      }),
  };
}
