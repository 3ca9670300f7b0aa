/**
 * Imports the main entry, or only the packages that it imports, in this fresh process, and prints one line of JSON.
 * Usage: node import-time.mjs library | packages
 */

import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { entry, importLibrary } from './library.mjs';

const rssBefore = process.memoryUsage().rss;
const packages = packagesOf(pathToFileURL(entry));
const start = performance.now();
if (process.argv[2] === 'library') await importLibrary();
else for (const specifier of packages) await import(specifier);
const ms = performance.now() - start;
console.log(JSON.stringify({ ms, rssMb: (process.memoryUsage().rss - rssBefore) / 2 ** 20 }));

/** The packages that a built file and its chunks import. They also resolve from this folder, which has no packages of these names. */
function packagesOf(file, found = new Set(), seen = new Set()) {
  if (seen.has(file.href)) return found;
  seen.add(file.href);
  const text = readFileSync(file, 'utf8');
  for (const [, specifier] of text.matchAll(/^(?:import|export)\s[^'"]*?['"]([^'"]+)['"];?$/gm)) {
    if (specifier.startsWith('.')) packagesOf(new URL(specifier, file), found, seen);
    else if (!specifier.startsWith('node:')) found.add(specifier);
  }
  return found;
}
