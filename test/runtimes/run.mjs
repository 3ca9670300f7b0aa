/**
 * The built package on every runtime: packs `dist/`, installs it beside its dependencies in a temporary folder, runs one and the
 * same program there on Node.js 20, 22 and 24, Deno, Bun and workerd, and compares what each prints with `expected.json`.
 * One line a runtime; exit code 1 when any differs.
 *
 * `node test/runtimes/run.mjs [--update]`; `npm ci` in this folder comes first, and a build of the package.
 */

import { execFile, execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { writeQuickstart } from './write-quickstart.mjs';

const HERE = fileURLToPath(new URL('./', import.meta.url));
const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const PROGRAM = ['ensembles.mjs', 'smoke.mjs', 'program.mjs', 'worker.mjs'];
const TIMEOUT_MS = 60_000;
const run = promisify(execFile);
const require = createRequire(import.meta.url);

if (!existsSync(join(ROOT, 'dist/index.js'))) fail('dist/ is empty: run `npm run build` first');
if (!existsSync(join(HERE, 'node_modules/esbuild')))
  fail('the runtimes are not installed: run `npm ci` in test/runtimes');

const work = mkdtempSync(join(tmpdir(), 'ensemble-runtimes-'));
try {
  installPackage();
  for (const file of PROGRAM) cpSync(join(HERE, file), join(work, file));
  writeQuickstart(join(ROOT, 'examples/quickstart'), work);
  process.exitCode = await runAll();
} finally {
  rmSync(work, { recursive: true, force: true });
}

/** As npm would: what the tarball holds, and the dependencies of the checkout. */
function installPackage() {
  execFileSync('npm', ['pack', '--ignore-scripts', '--silent', '--pack-destination', work], {
    cwd: ROOT,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const { name, version, dependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  execFileSync('tar', ['-xzf', `${name}-${version}.tgz`], { cwd: work });
  mkdirSync(join(work, 'node_modules'));
  execFileSync('mv', ['package', join('node_modules', name)], { cwd: work });
  for (const dependency of Object.keys(dependencies)) {
    const link = join(work, 'node_modules', dependency);
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(join(ROOT, 'node_modules', dependency), link, 'dir');
  }
  writeFileSync(join(work, 'package.json'), JSON.stringify({ private: true, type: 'module' }));
}

async function runAll() {
  const expectedFile = join(HERE, 'expected.json');
  const expected = JSON.parse(readFileSync(expectedFile, 'utf8'));
  const update = process.argv.includes('--update');
  let passed = 0;
  const runtimes = [node(20), node(22), node(24), deno(), bun(), workerd()];
  for (const { name, version, start } of runtimes) {
    const began = performance.now();
    let outcome = 'ok';
    try {
      const printed = JSON.parse(await start());
      if (update && name === 'Node.js 20') {
        writeFileSync(expectedFile, `${JSON.stringify(printed, null, 2)}\n`);
        Object.assign(expected, printed);
      }
      const differences = compare(expected, printed, '');
      if (differences.length > 0) outcome = `DIFFERS\n${differences.map((line) => `    ${line}`).join('\n')}`;
      else passed += 1;
    } catch (error) {
      outcome = `FAILED\n${String(error.stderr || error.message)
        .trim()
        .replace(/^/gm, '    ')}`;
    }
    console.log(
      `${name.padEnd(11)} ${version.padEnd(14)} ${String(Math.round(performance.now() - began)).padStart(5)} ms  ${outcome}`,
    );
  }
  console.log(`${passed} passed, ${runtimes.length - passed} failed`);
  return passed === runtimes.length ? 0 : 1;
}

async function execute(file, args) {
  const { stdout } = await run(file, args, {
    cwd: work,
    timeout: TIMEOUT_MS,
    env: { PATH: process.env.PATH, HOME: work, NO_COLOR: '1' },
  });
  return stdout;
}

function node(major) {
  const { version, program } = nodeProgram(major);
  return { name: `Node.js ${major}`, version, start: () => execute(program(), ['program.mjs']) };
}

function nodeProgram(major) {
  return installed(`node${major}-${process.platform}-${process.arch}`, 'bin/node');
}

function deno() {
  const { version, program } = installed(`@deno/${process.platform}-${process.arch}-glibc`, 'deno');
  // What asks for a file, the network or a variable fails, but for two that the YAML parser's debugging reads.
  const flags = ['--no-prompt', '--quiet', '--node-modules-dir=manual', '--allow-env=LOG_TOKENS,LOG_STREAM'];
  return { name: 'Deno', version, start: () => execute(program(), ['run', ...flags, 'program.mjs']) };
}

function bun() {
  const cpu = process.arch === 'arm64' ? 'aarch64' : process.arch;
  const { version, program } = installed(`@oven/bun-${process.platform}-${cpu}`, 'bin/bun');
  return { name: 'Bun', version, start: () => execute(program(), ['run', 'program.mjs']) };
}

function workerd() {
  const start = async () => {
    const bundle = join(work, 'worker.bundle.mjs');
    await bundleWorker(bundle);
    // Miniflare's own program needs a newer Node.js than this library does.
    return execute(nodeProgram(24).program(), [join(HERE, 'serve-worker.mjs'), bundle]);
  };
  return { name: 'workerd', version: installed('workerd').version, start };
}

function bundleWorker(outfile) {
  const { build } = require('esbuild');
  return build({
    entryPoints: [join(work, 'worker.mjs')],
    outfile,
    bundle: true,
    format: 'esm',
    target: 'es2022',
    platform: 'neutral',
    mainFields: ['browser', 'module', 'main'],
    conditions: ['workerd', 'worker', 'browser'],
    logLevel: 'error',
  });
}

/** An installed package: its version, and the path of the program that it holds. */
function installed(name, file = '') {
  const folder = join(HERE, 'node_modules', name);
  const manifest = join(folder, 'package.json');
  const version = existsSync(manifest) ? JSON.parse(readFileSync(manifest, 'utf8')).version : '-';
  const program = () => {
    if (version !== '-') return join(folder, file);
    throw new Error(`${name} is not installed: run \`npm ci\` in test/runtimes; its package.json lists the platforms`);
  };
  return { version, program };
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
