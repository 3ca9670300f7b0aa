/** The libraries that are measured beside this one, and whether they are installed. */

import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

export const PEERS = {
  mastra: { title: 'Mastra', package: '@mastra/core' },
  langgraph: { title: 'LangGraph', package: '@langchain/langgraph' },
};

export function peerFolder(name) {
  return fileURLToPath(new URL(`./peers/${name}/`, import.meta.url));
}

export function isInstalled(name) {
  return existsSync(`${peerFolder(name)}node_modules/${PEERS[name].package}/package.json`);
}

/** `Mastra 1.2.3`, with the version that is installed. */
export function titleOf(name) {
  const path = `${peerFolder(name)}node_modules/${PEERS[name].package}/package.json`;
  return `${PEERS[name].title} ${JSON.parse(readFileSync(path, 'utf8')).version}`;
}
