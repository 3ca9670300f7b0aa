/** Installs each peer in a folder of its own, from its lock file; a peer that can't be installed costs its row, not the run. */

import { spawnSync } from 'node:child_process';
import { pathToFileURL } from 'node:url';
import { isInstalled, PEERS, peerFolder } from './peers.mjs';

/** @returns what went wrong, by peer; empty when all are there */
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
