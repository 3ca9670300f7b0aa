/** Traces by the real SDK of OpenTelemetry, on each runtime. */

import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { bun, bundleWorker, deno, HERE, node, workerd } from './programs.mjs';

const PACKAGES = ['api', 'context-async-hooks', 'sdk-trace-base'];
const TIMEOUT_MS = 60_000;
const EXPECTED = JSON.stringify({
  spans: [
    ['create traced', null, []],
    ['chat m', 'agent ask', []],
    ['agent ask', 'create traced', []],
    ['invoke_workflow traced', 'create traced', []],
    ['resume traced', null, ['create traced', 'invoke_workflow traced']],
    ['GET', 'agent call', []],
    ['agent call', 'resume traced', []],
    ['invoke_workflow traced', 'resume traced', ['invoke_workflow traced']],
  ],
  sent: 'GET',
});
const run = promisify(execFile);

/** @param work - a folder with the installed package @returns the checks, whose `check()` returns the differences */
export function otel(work) {
  let isInstalled = false;
  const check = (name, version, file, args) => ({
    name: `OTel ${name}`,
    version,
    async check() {
      if (!isInstalled) install(work);
      isInstalled = true;
      const env = { PATH: process.env.PATH, HOME: work, NO_COLOR: '1' };
      const { stdout } = await run(file(), await args(), { cwd: work, timeout: TIMEOUT_MS, env });
      const found = JSON.stringify(JSON.parse(stdout));
      return found === EXPECTED ? [] : [`${found} instead of ${EXPECTED}`];
    },
  });
  const program = 'traces-program.mjs';
  // The SDK reads the variables of its configuration.
  const denoEnv = '--allow-env=LOG_TOKENS,LOG_STREAM,OTEL_*';
  return [
    ...[20, 22, 24].map((major) => check(`Node ${major}`, node(major).version, node(major).program, () => [program])),
    check('Deno', deno().version, deno().program, () => [
      ...['run', '--no-prompt', '--quiet', '--node-modules-dir=manual', denoEnv, program],
    ]),
    check('Bun', bun().version, bun().program, () => ['run', program]),
    check('workerd', workerd().version, node(24).program, async () => {
      const bundle = join(work, 'traces.bundle.mjs');
      await bundleWorker(join(work, 'traces-worker.mjs'), bundle, 'nodejs_compat');
      return [join(HERE, 'serve-worker.mjs'), bundle, 'nodejs_compat'];
    }),
  ];
}

function install(work) {
  mkdirSync(join(work, 'node_modules/@opentelemetry'));
  for (const name of PACKAGES) {
    const path = join('node_modules/@opentelemetry', name);
    symlinkSync(join(HERE, '../..', path), join(work, path), 'dir');
  }
  cpSync(join(HERE, 'traces.mjs'), join(work, 'traces.mjs'));
  const imports = "import { traces } from './traces.mjs';\n";
  writeFileSync(join(work, 'traces-program.mjs'), `${imports}console.log(JSON.stringify(await traces()));\n`);
  const worker = 'export default { fetch: async () => Response.json(await traces()) };\n';
  writeFileSync(join(work, 'traces-worker.mjs'), imports + worker);
}
