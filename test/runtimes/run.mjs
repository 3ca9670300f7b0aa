/**
 * The built package on every runtime. The script packs `dist/` and installs the package with its dependencies in a temporary
 * folder. There it runs one program on Node.js 20, 22 and 24, Deno, Bun and workerd, and compares each output with
 * `expected.json`. It traces an execution with the SDK of OpenTelemetry, and runs the HTTP suite, calls of peers that misbehave and the suite of SQL databases on each of them. Then it serves the mounting examples of
 * Deno, Bun, Workers and Next.js, calls MCP servers from a Worker, renders PDFs on Deno and Bun, runs the tests of the entry `ai` with other versions of the AI SDK's providers, and a Worker
 * with Workers AI, runs the published suites in Durable Objects, and kills workerd under an
 * execution that sleeps.
 * It runs the test file of the quickstart in the test runners of Deno and Bun.
 * It prints one line per runtime, example and set of suites, and its exit code is 1 when any of them differs.
 *
 * `node test/runtimes/run.mjs [--update]`, after `npm ci` in this folder and a build of the package.
 */

import { execFile, execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { ai } from './ai.mjs';
import { cloudflareStores } from './cloudflare-stores.mjs';
import { durableObjects } from './durable-objects.mjs';
import { durableObjectsKill } from './durable-objects-kill.mjs';
import { httpPeers } from './http-peers.mjs';
import { mcp } from './mcp.mjs';
import { mountNext } from './mount-next.mjs';
import { mounts } from './mounts.mjs';
import { otel } from './otel.mjs';
import { pdf } from './pdf.mjs';
import { bun, bundleWorker, deno, HERE, node, workerd } from './programs.mjs';
import { sql } from './sql.mjs';
import { testFiles } from './test-files.mjs';
import { writeQuickstart } from './write-quickstart.mjs';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const PROGRAM = ['ensembles.mjs', 'services.mjs', 'smoke.mjs', 'program.mjs', 'worker.mjs'];
const TIMEOUT_MS = 60_000;
const run = promisify(execFile);

if (!existsSync(join(ROOT, 'dist/index.js'))) fail('dist/ is empty: run `npm run build` first');
if (!existsSync(join(HERE, 'node_modules/esbuild')))
  fail('the runtimes are not installed: run `npm ci` in test/runtimes');

const work = mkdtempSync(join(tmpdir(), 'ensemble-runtimes-'));
try {
  installPackage();
  for (const file of PROGRAM) cpSync(join(HERE, file), join(work, file));
  cpSync(join(ROOT, 'examples'), join(work, 'examples'), { recursive: true });
  writeQuickstart(join(ROOT, 'examples/quickstart'), work);
  process.exitCode = await runAll();
} finally {
  rmSync(work, { recursive: true, force: true });
}

/** Installs the package as npm does: the content of the tarball, the dependencies of the checkout, and the optional package of `/mcp`. */
function installPackage() {
  execFileSync('npm', ['pack', '--ignore-scripts', '--silent', '--pack-destination', work], {
    cwd: ROOT,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const { name, version, dependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  execFileSync('tar', ['-xzf', `${name}-${version}.tgz`], { cwd: work });
  mkdirSync(join(work, 'node_modules'));
  execFileSync('mv', ['package', join('node_modules', name)], { cwd: work });
  for (const dependency of [...Object.keys(dependencies), '@modelcontextprotocol/client']) {
    const link = join(work, 'node_modules', dependency);
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(join(ROOT, 'node_modules', dependency), link, 'dir');
  }
  writeFileSync(join(work, 'package.json'), JSON.stringify({ private: true, type: 'module' }));
}

async function runAll() {
  let passed = 0;
  const checks = [
    ...[...programs(), ...otel(work), ...httpPeers(work), ...sql(work), ...mounts(work), mountNext(work)],
    ...testFiles(work),
    ...[mcp(work), ...pdf(work), ...ai(work), durableObjects(work), durableObjectsKill(work), cloudflareStores(work)],
  ];
  for (const { name, version, check } of checks) {
    const began = performance.now();
    let outcome = 'ok';
    try {
      const differences = await check();
      if (differences.length > 0) outcome = `DIFFERS\n${differences.map((line) => `    ${line}`).join('\n')}`;
      else passed += 1;
    } catch (error) {
      outcome = `FAILED\n${String(error.stderr || error.message)
        .trim()
        .replace(/^/gm, '    ')}`;
    }
    console.log(
      `${name.padEnd(12)} ${version.padEnd(14)} ${String(Math.round(performance.now() - began)).padStart(5)} ms  ${outcome}`,
    );
  }
  console.log(`${passed} passed, ${checks.length - passed} failed`);
  return passed === checks.length ? 0 : 1;
}

/** The program on each runtime. */
function programs() {
  const expectedFile = join(HERE, 'expected.json');
  const expected = JSON.parse(readFileSync(expectedFile, 'utf8'));
  const update = process.argv.includes('--update');
  const runtime = (name, version, start) => ({
    name,
    version,
    async check() {
      const printed = JSON.parse(await start());
      if (update && name === 'Node.js 20') {
        writeFileSync(expectedFile, `${JSON.stringify(printed, null, 2)}\n`);
        Object.assign(expected, printed);
      }
      return compare(expected, printed, '');
    },
  });
  // Access to files, the network or variables fails, except for two variables that the YAML parser reads for its debugging.
  const denoFlags = ['--no-prompt', '--quiet', '--node-modules-dir=manual', '--allow-env=LOG_TOKENS,LOG_STREAM'];
  return [
    ...[20, 22, 24].map((major) =>
      runtime(`Node.js ${major}`, node(major).version, () => execute(node(major).program(), ['program.mjs'])),
    ),
    runtime('Deno', deno().version, () => execute(deno().program(), ['run', ...denoFlags, 'program.mjs'])),
    runtime('Bun', bun().version, () => execute(bun().program(), ['run', 'program.mjs'])),
    runtime('workerd', workerd().version, async () => {
      const bundle = join(work, 'worker.bundle.mjs');
      await bundleWorker(join(work, 'worker.mjs'), bundle);
      // Miniflare's own program needs a newer Node.js than this library does.
      return execute(node(24).program(), [join(HERE, 'serve-worker.mjs'), bundle]);
    }),
  ];
}

async function execute(file, args) {
  const { stdout } = await run(file, args, {
    cwd: work,
    timeout: TIMEOUT_MS,
    env: { PATH: process.env.PATH, HOME: work, NO_COLOR: '1' },
  });
  return stdout;
}

/** Places where two JSON values differ. */
function compare(expected, found, path) {
  if (typeof expected === 'object' && typeof found === 'object' && expected !== null && found !== null) {
    const keys = new Set([...Object.keys(expected), ...Object.keys(found)]);
    return [...keys].flatMap((key) => compare(expected[key], found[key], path === '' ? key : `${path}.${key}`));
  }
  return Object.is(expected, found) ? [] : [`${path}: ${JSON.stringify(found)} instead of ${JSON.stringify(expected)}`];
}

function fail(message) {
  console.error(message);
  process.exit(1);
}
