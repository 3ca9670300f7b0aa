/** The programs of the runtimes, as this folder's `npm ci` installs them, and the bundler for Workers. */

import { existsSync, readFileSync } from 'node:fs';
import { builtinModules, createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const HERE = fileURLToPath(new URL('./', import.meta.url));

const require = createRequire(import.meta.url);

export function node(major) {
  return installed(`node${major}-${process.platform}-${process.arch}`, 'bin/node');
}

export function deno() {
  return installed(`@deno/${process.platform}-${process.arch}-glibc`, 'deno');
}

export function bun() {
  const cpu = process.arch === 'arm64' ? 'aarch64' : process.arch;
  return installed(`@oven/bun-${process.platform}-${cpu}`, 'bin/bun');
}

/** Miniflare starts its own workerd, which has this version. */
export function workerd() {
  const cpu = process.arch === 'arm64' ? 'arm64' : '64';
  return installed(`@cloudflare/workerd-${process.platform}-${cpu}`, 'bin/workerd');
}

const REQUIRE = "import { createRequire } from 'node:module'; const require = createRequire('file:///worker.mjs');";

/** Bundles a Worker as wrangler does. @param compatibility - `nodejs_compat`: with modules of Node.js */
export function bundleWorker(entry, outfile, compatibility) {
  const isCompatible = compatibility === 'nodejs_compat';
  const { build } = require('esbuild');
  return build({
    entryPoints: [entry],
    outfile,
    bundle: true,
    format: 'esm',
    target: 'es2022',
    platform: 'neutral',
    mainFields: ['browser', 'module', 'main'],
    conditions: ['workerd', 'worker', 'browser'],
    external: ['cloudflare:*', ...(isCompatible ? ['node:*'] : [])],
    banner: isCompatible ? { js: REQUIRE } : {},
    // wrangler gives modules of Node.js their prefix.
    alias: isCompatible ? Object.fromEntries(builtinModules.map((name) => [name, `node:${name}`])) : {},
    logLevel: 'error',
  });
}

/** Bundles a server in TypeScript for Node.js. */
export function bundleServer(entry, outfile) {
  const { build } = require('esbuild');
  return build({ entryPoints: [entry], outfile, bundle: true, format: 'esm', platform: 'node', logLevel: 'error' });
}

/** The version of an installed package, and the path of a program in it. */
export function installed(name, file = '') {
  const folder = join(HERE, 'node_modules', name);
  const manifest = join(folder, 'package.json');
  const version = existsSync(manifest) ? JSON.parse(readFileSync(manifest, 'utf8')).version : '-';
  const program = () => {
    if (version !== '-') return join(folder, file);
    throw new Error(`${name} is not installed: run \`npm ci\` in test/runtimes; its package.json lists the platforms`);
  };
  return { version, program };
}
