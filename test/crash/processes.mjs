/** Starts child processes. Every child process ends with this process at the latest. */

import { spawn } from 'node:child_process';

const alive = new Set();
process.on('exit', () => {
  for (const child of alive) child.kill('SIGKILL');
});
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(1));

/**
 * Starts a program with plain Node.js.
 * @param about - passed to the program as JSON
 * @returns the process, and `ended`: its exit code or signal, what it wrote to stderr, and whether it took too long
 */
export function start(program, about, { timeoutMs }) {
  const args = ['--no-warnings', program, JSON.stringify(about)];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'inherit', 'pipe'] });
  alive.add(child);
  let errors = '';
  let late = false;
  child.stderr.setEncoding('utf8').on('data', (text) => {
    if (errors.length < 20_000) errors += text;
  });
  const timer = setTimeout(() => {
    late = true;
    child.kill('SIGKILL');
  }, timeoutMs);
  const ended = new Promise((resolve) => {
    child.on('close', (code, signal) => {
      clearTimeout(timer);
      alive.delete(child);
      resolve({ code, signal, errors, late });
    });
  });
  return { child, ended };
}

/** Calls `work` for each entry of a list, `width` at a time. */
export async function inParallel(width, list, work) {
  const rest = [...list];
  const lane = async () => {
    for (let one = rest.shift(); one !== undefined; one = rest.shift()) await work(one);
  };
  await Promise.all(Array.from({ length: width }, lane));
}
