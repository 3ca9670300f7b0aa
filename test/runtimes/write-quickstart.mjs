/** Turns the quickstart's project folder into one module that any runtime can load: its YAML as text, its scripts as imports. */

import { cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Writes `quickstart.mjs` and the scripts beside it. It exports `ensembles`, `scripts` and `orders`. */
export function writeQuickstart(project, work) {
  cpSync(join(project, 'scripts'), join(work, 'scripts'), { recursive: true });
  const list = (folder) => readdirSync(join(project, folder)).sort();
  const read = (folder, name) => readFileSync(join(project, folder, name), 'utf8');
  const scripts = list('scripts').filter((name) => name.endsWith('.mjs') && !name.startsWith('_'));
  const module = [
    ...scripts.map((name, i) => `import script${i} from './scripts/${name}';`),
    `export const ensembles = ${JSON.stringify(list('ensembles').map((name) => read('ensembles', name)))};`,
    `export const scripts = { ${scripts.map((name, i) => `${JSON.stringify(name.slice(0, -'.mjs'.length))}: script${i}`).join(', ')} };`,
    `export const orders = [${list('orders')
      .map((name) => read('orders', name).trim())
      .join(', ')}];`,
  ];
  writeFileSync(join(work, 'quickstart.mjs'), `${module.join('\n')}\n`);
}
