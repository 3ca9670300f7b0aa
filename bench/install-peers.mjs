/** Installs each peer in its own folder, from its lock file. If that fails, the benchmark runs without the peer's rows. */

import { spawnSync } from 'node:child_process';
import { pathToFileURL } from 'node:url';
import { isInstalled, PEERS, peerFolder } from './peers.mjs';

/** @returns the problem of each peer that failed; empty if all are installed */
export function installPeers(names = Object.keys(PEERS)) {
  const problems = {};
  for (const name of names) {
    if (isInstalled(name)) continue;
    console.error(`installing ${PEERS[name].title} in bench/peers/${name} ...`);
    const npm = spawnSync('npm', ['ci', '--no-audit', '--no-fund', '--ignore-scripts', '--loglevel=error'], {
      cwd: peerFolder(name),
      encoding: 'utf8',
      shell: process.platform === 'win32',
    });
    if (npm.status === 0 && isInstalled(name)) continue;
    const why = (npm.stderr || npm.error?.message || '').trim().split('\n')[0] || `npm ci ended with ${npm.status}`;
    problems[name] = why;
    console.error(`${PEERS[name].title} could not be installed, its row will be missing: ${why}`);
  }
  return problems;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) installPeers();
