/** The lockfiles serve any registry, any platform and the oldest supported Node.js: `npm ci` works everywhere, without warnings. */

import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { minVersion, satisfies } from 'semver';
import { describe, expect, it } from 'vitest';
import { ROOT } from './source-graph.ts';

interface Lockfile {
  readonly packages: Record<
    string,
    {
      readonly engines?: { readonly node?: string };
      readonly resolved?: string;
      readonly integrity?: string;
      readonly optional?: boolean;
      readonly dev?: boolean;
      readonly os?: readonly string[];
      readonly optionalDependencies?: Record<string, string>;
    }
  >;
}

const read = (path: string): Lockfile => JSON.parse(readFileSync(path, 'utf8'));

/** Optional packages that no entry of the lockfile stands for: `npm ci` refuses a lockfile that leaves one out. */
function leftOut({ packages }: Lockfile): readonly string[] {
  const locked = Object.keys(packages);
  const optional = Object.values(packages).flatMap(({ optionalDependencies = {} }) =>
    Object.keys(optionalDependencies),
  );
  return [...new Set(optional)].filter((name) => !locked.some((path) => path.endsWith(`node_modules/${name}`)));
}

describe.each(['package-lock.json', 'site/package-lock.json', 'test/runtimes/package-lock.json'])('%s', (path) => {
  it('holds no address of a registry', () => {
    const resolved = Object.entries(read(join(ROOT, path)).packages).filter(
      ([, entry]) => entry.resolved !== undefined,
    );
    expect(resolved.map(([name]) => name)).toEqual([]);
  });

  it('has the hash of every package, but for tools of other platforms that the registry did not hold', () => {
    const bare = Object.entries(read(join(ROOT, path)).packages).filter(([at, { integrity }]) => at && !integrity);
    const others = bare.filter(([, { dev, optional, os }]) => !(dev && optional && os));
    expect(others.map(([name]) => name)).toEqual([]);
  });

  it('leaves out no package of another platform (scripts/complete-lockfile.mjs adds them)', () => {
    expect(leftOut(read(join(ROOT, path)))).toEqual([]);
  });
});

// The smoke test starts miniflare, which needs Node.js 22, with a Node.js of its own.
describe.each(['package-lock.json', 'site/package-lock.json'])('%s', (path) => {
  it('has only packages that support the oldest supported Node.js, so that `npm ci` prints no warning', () => {
    const { engines: ours } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
    const oldest = minVersion(ours.node) ?? 'no version';
    const newer = Object.entries(read(join(ROOT, path)).packages).filter(
      ([, { engines }]) => !satisfies(oldest, engines?.node ?? '*'),
    );
    expect(newer.map(([name, { engines }]) => `${name}: ${engines?.node}`)).toEqual([]);
  });
});

describe('scripts/complete-lockfile.mjs', () => {
  it('adds what is left out, for its platform, and changes nothing that is complete', () => {
    const folder = mkdtempSync(join(tmpdir(), 'lockfile-'));
    const file = join(folder, 'package-lock.json');
    try {
      const complete = () =>
        execFileSync('node', [join(ROOT, 'scripts/complete-lockfile.mjs'), file], { encoding: 'utf8' });
      copyFileSync(join(ROOT, 'package-lock.json'), file);
      expect(complete()).toBe('');
      const lock = read(file);
      delete lock.packages['node_modules/@rollup/rollup-win32-arm64-msvc'];
      delete lock.packages['node_modules/@rollup/rollup-linux-x64-musl'];
      writeFileSync(file, JSON.stringify(lock));
      expect(complete()).toContain('added 2 packages');
      const { packages } = read(file);
      expect(Object.keys(packages)).toEqual(Object.keys(read(join(ROOT, 'package-lock.json')).packages));
      expect(packages['node_modules/@rollup/rollup-win32-arm64-msvc']).toMatchObject({
        os: ['win32'],
        cpu: ['arm64'],
        optional: true,
        dev: true,
      });
      expect(packages['node_modules/@rollup/rollup-linux-x64-musl']).toMatchObject({
        os: ['linux'],
        cpu: ['x64'],
        libc: ['musl'],
      });
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
