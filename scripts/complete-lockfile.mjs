/**
 * Adds the platform packages to package-lock.json that npm omits if its registry does not have them. Without them, `npm ci`
 * refuses the lockfile on every platform. With them, it skips the packages of other platforms.
 *
 * `node scripts/complete-lockfile.mjs [package-lock.json ...]`, after `npm install` has changed a lockfile
 */

import { readFileSync, writeFileSync } from 'node:fs';

const SYSTEMS = ['aix', 'android', 'darwin', 'freebsd', 'linux', 'netbsd', 'openbsd', 'openharmony', 'sunos', 'win32'];
const PROCESSORS = ['arm', 'arm64', 'ia32', 'loong64', 'mips64el', 'ppc64', 'riscv64', 's390x', 'wasm32', 'x64'];
const SPELLED_OTHERWISE = { windows: 'win32', aarch64: 'arm64', x86: 'ia32' };

const LOCKFILES = ['package-lock.json', 'site/package-lock.json', 'test/runtimes/package-lock.json'];

const files = process.argv.slice(2);
for (const file of files.length > 0 ? files : LOCKFILES) complete(file);

function complete(file) {
  const lock = JSON.parse(readFileSync(file, 'utf8'));
  const added = [];
  for (const [path, parent] of Object.entries(lock.packages)) {
    for (const [name, version] of Object.entries(parent.optionalDependencies ?? {})) {
      if (isLocked(lock, path, name)) continue;
      const entry = platformEntry(name, version, parent);
      lock.packages[`node_modules/${name}`] = entry;
      added.push(`${name}@${entry.version}`);
    }
  }
  if (added.length === 0) return;
  const root = lock.packages[''];
  const sorted = Object.keys(lock.packages)
    .filter((path) => path !== '')
    .sort((a, b) => a.localeCompare(b, 'en'));
  lock.packages = { '': root, ...Object.fromEntries(sorted.map((path) => [path, lock.packages[path]])) };
  writeFileSync(file, `${JSON.stringify(lock, null, 2)}\n`);
  console.log(`${file}: added ${added.length} packages of other platforms:\n  ${added.join('\n  ')}`);
}

/** Whether the lockfile has the package where its parent finds it: in the parent's `node_modules` or in a folder above. */
function isLocked(lock, path, name) {
  for (let at = path; ; at = at.slice(0, Math.max(0, at.lastIndexOf('node_modules/') - 1))) {
    if (lock.packages[`${at === '' ? '' : `${at}/`}node_modules/${name}`]) return true;
    if (at === '') return false;
  }
}

/** The lockfile entry of a platform package. Its name contains the platform. */
function platformEntry(name, version, parent) {
  if (!/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(version))
    throw new Error(`${name}@${version}: add it by hand; its version is a range`);
  const words = name.split(/[/-]/).map((word) => SPELLED_OTHERWISE[word] ?? word);
  const cpu = words.filter((word) => PROCESSORS.includes(word));
  const os = words.filter((word) => SYSTEMS.includes(word));
  if (cpu.length !== 1 || os.length !== 1)
    throw new Error(`${name}: add it by hand; its name does not contain one platform`);
  const libc = words.includes('musl') ? ['musl'] : words.includes('gnu') ? ['glibc'] : undefined;
  return { version, cpu, ...(parent.dev && { dev: true }), ...(libc && { libc }), optional: true, os };
}
