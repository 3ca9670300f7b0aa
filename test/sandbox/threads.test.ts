/** Sandboxed scripts in threads: the built files, because a thread loads a file of its own. */

import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { SandboxOptions } from '../../src/entries/sandbox.ts';
import { type LoggedLine, sandboxContext } from './sandbox-context.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
// From this folder Node.js finds the packages, and Git ignores it.
const FOLDER = join(ROOT, 'node_modules/.cache/ensemble-orchestrator', `sandbox-${process.pid}`);
const PATIENT = 60_000;
/** A search that QuickJS makes in one step of many minutes. */
const ONE_LONG_STEP = "export default () => { const s = 'a'.repeat(4e5); return s.indexOf(s.slice(0, 2e5) + 'b') }";

let library: typeof import('../../src/entries/sandbox.ts');

beforeAll(async () => {
  mkdirSync(FOLDER, { recursive: true });
  await build({
    entryPoints: {
      sandbox: join(ROOT, 'src/entries/sandbox.ts'),
      'sandbox-thread': join(ROOT, 'src/adapters/sandbox/sandbox-thread.ts'),
    },
    outdir: FOLDER,
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'neutral',
    external: ['node:*'],
    packages: 'external',
  });
  library = await import(/* @vite-ignore */ pathToFileURL(join(FOLDER, 'sandbox.js')).href);
}, PATIENT);
afterAll(() => rmSync(FOLDER, { recursive: true, force: true }));

const open = (options: SandboxOptions = {}) => library.sandbox({ timeout: PATIENT, ...options });

describe('a thread', () => {
  it('runs scripts and checks texts, and their lines and failures arrive', async () => {
    const box = open();
    const lines: LoggedLine[] = [];
    const script = box.script("export default ({ input }) => { console.log('in'); return input.n * 2 }");
    expect(await script(sandboxContext({ input: { n: 4 } }, lines))).toBe(8);
    expect(lines).toEqual([{ level: 'info', fields: {}, message: 'in' }]);
    expect(await box.check('let x = ;')).toMatchObject({ line: 1 });
    const failing = box.script("export default () => { throw new Error('no') }");
    await expect(failing(sandboxContext())).rejects.toThrow('no');
  });

  it('keeps the thread of the host free while a script runs', async () => {
    const box = open({ timeout: 400, threads: 1 });
    let turns = 0;
    const timer = setInterval(() => (turns += 1), 10);
    await expect(box.script('for (;;) {}')(sandboxContext())).rejects.toMatchObject({ code: 'TIMEOUT' });
    clearInterval(timer);
    expect(turns).toBeGreaterThan(3);
  });

  it('ends after the time limit even in one step of a built-in function, and the next call has a new thread', async () => {
    const box = open({ timeout: 200, threads: 1 });
    const began = performance.now();
    const [stuck, next] = [box.script(ONE_LONG_STEP)(sandboxContext()), box.check('export default () => 7')];
    await expect(stuck).rejects.toMatchObject({ code: 'TIMEOUT', retryable: true });
    expect(await next).toBeUndefined();
    expect(performance.now() - began).toBeLessThan(PATIENT);
  });

  it.each([0, 1000])(
    'ends when the attempt is aborted after %i ms, with the reason, and so does a call that waits',
    async (ms) => {
      const controller = new AbortController();
      const reason = new Error('cancelled');
      const box = open({ threads: 1 });
      const context = () => sandboxContext({ signal: controller.signal });
      const calls = [box.script(ONE_LONG_STEP)(context()), box.script('export default () => 1')(context())];
      setTimeout(() => controller.abort(reason), ms);
      for (const call of await Promise.allSettled(calls)) expect(call).toMatchObject({ status: 'rejected', reason });
      expect(await box.script('export default () => 1')(sandboxContext())).toBe(1);
    },
  );

  it('runs as many calls at a time as there are threads, and all of them in the end', async () => {
    const script = open({ threads: 2 }).script('export default ({ input }) => input');
    const calls = Array.from({ length: 20 }, (_, i) => script(sandboxContext({ input: i })));
    expect(await Promise.all(calls)).toEqual(Array.from({ length: 20 }, (_, i) => i));
  });

  it.each([
    ['a result', 'export default () => 1', '1'],
    ['a failure', "export default () => { throw new Error('no') }", 'AGENT_FAILED'],
    ['the time limit', 'for (;;) {}', 'TIMEOUT'],
  ])('does not keep the process alive after %s', (_, text, result) => {
    const program = `
      import { sandbox } from ${JSON.stringify(pathToFileURL(join(FOLDER, 'sandbox.js')).href)};
      const logger = { debug() {}, info() {}, warn() {}, error() {} };
      const context = { input: null, config: {}, env: {}, execution: {}, logger, signal: new AbortController().signal };
      const call = sandbox({ timeout: 1000 }).script(${JSON.stringify(text)})(context);
      console.log(String(await call.catch((error) => error.code ?? 'AGENT_FAILED')));
    `;
    // A process that does not end by itself is ended here, and then this throws.
    const said = execFileSync(process.execPath, ['--input-type=module', '-e', program], {
      timeout: PATIENT,
      encoding: 'utf8',
    });
    expect(said.trim()).toBe(result);
  });

  it('that can not start is NOT_CONFIGURED, with the remedy', async () => {
    rmSync(join(FOLDER, 'sandbox-thread.js'));
    expect(existsSync(join(FOLDER, 'sandbox-thread.js'))).toBe(false);
    await expect(open().check('1')).rejects.toMatchObject({
      code: 'NOT_CONFIGURED',
      message: expect.stringContaining('use `sandbox({ threads: 0 })`'),
    });
  });
});
