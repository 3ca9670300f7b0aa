/** Turns the project folder of the quickstart into one module that every runtime can load: YAML as text, scripts as imports. */

import { cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Writes the scripts and `quickstart.mjs`, which exports `ensembles`, `scripts` and `orders`. */
export function writeQuickstart(project, work) {
  cpSync(join(project, 'scripts'), join(work, 'scripts'), { recursive: true });
  const list = (folder) => readdirSync(join(project, folder)).sort();
  const read = (folder, name) => readFileSync(join(project, folder, name), 'utf8');
  const scripts = list('scripts').filter((name) => name.endsWith('.mjs') && !name.startsWith('_'));
  const definitions = list('ensembles').filter((name) => !name.endsWith('.test.yaml'));
  const module = [
    ...scripts.map((name, i) => `import script${i} from './scripts/${name}';`),
    `export const ensembles = ${JSON.stringify(definitions.map((name) => read('ensembles', name)))};`,
    `export const scripts = { ${scripts.map((name, i) => `${JSON.stringify(name.slice(0, -'.mjs'.length))}: script${i}`).join(', ')} };`,
    `export const orders = [${list('orders')
      .map((name) => read('orders', name).trim())
      .join(', ')}];`,
  ];
  writeFileSync(join(work, 'quickstart.mjs'), `${module.join('\n')}\n`);
}
