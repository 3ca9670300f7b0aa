/** The other libraries that are measured, and whether they are installed. */

import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

export const PEERS = {
  mastra: { title: 'Mastra', package: '@mastra/core' },
  langgraph: { title: 'LangGraph', package: '@langchain/langgraph' },
  dbos: { title: 'DBOS', package: '@dbos-inc/dbos-sdk' },
  pgboss: { title: 'pg-boss', package: 'pg-boss' },
  bullmq: { title: 'BullMQ', package: 'bullmq' },
  openworkflow: { title: 'OpenWorkflow', package: 'openworkflow' },
};

export function peerFolder(name) {
  return fileURLToPath(new URL(`./peers/${name}/`, import.meta.url));
}

/** Whether all packages of the peer's folder are installed in the required versions. */
export function isInstalled(name) {
  const { dependencies } = readPackage(`${peerFolder(name)}package.json`);
  return Object.entries(dependencies).every(([dependency, version]) => versionOf(name, dependency) === version);
}

/** Name and installed version, such as `Mastra 1.2.3`. */
export function titleOf(name) {
  const version = versionOf(name, PEERS[name].package);
  return version ? `${PEERS[name].title} ${version}` : PEERS[name].title;
}

function versionOf(name, dependency) {
  const path = `${peerFolder(name)}node_modules/${dependency}/package.json`;
  return existsSync(path) ? readPackage(path).version : undefined;
}

function readPackage(path) {
  return JSON.parse(readFileSync(path, 'utf8'));
}
