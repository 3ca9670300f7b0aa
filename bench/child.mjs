/** Runs a script of this folder in its own process. */

import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const cwd = fileURLToPath(new URL('.', import.meta.url));

/**
 * @param args - for `node`, the script first
 * @param options - `env`: variables in addition to those of this process; `timeoutMs`: the script is killed after this time
 * @returns its standard output
 * @throws when it fails, with its standard error
 */
export function runChild(args, { env = {}, timeoutMs = 0 } = {}) {
  const child = spawn(process.execPath, args, {
    cwd,
    env: { ...process.env, NODE_NO_WARNINGS: '1', MASTRA_TELEMETRY_DISABLED: '1', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: timeoutMs,
    killSignal: 'SIGKILL',
  });
  let output = '';
  let errors = '';
  child.stdout.setEncoding('utf8').on('data', (text) => {
    output += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text) => {
    errors += text;
  });
  const kill = () => child.kill('SIGKILL');
  process.once('exit', kill);
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code, signal) => {
      process.off('exit', kill);
      if (code === 0) resolve(output);
      else reject(new Error(`\`node ${args.join(' ')}\` ended with ${code ?? signal}:\n${errors.trim()}`));
    });
  });
}
