/** Lets a process load the modules of a project again. */

import * as nodeModule from 'node:module';
import { createRequire } from 'node:module';
import { join, sep } from 'node:path';
import { pathToFileURL } from 'node:url';
import { CliError } from '../terminal/cli-error.ts';

/**
 * A hook of the module loader. A module of the project that was imported with a query `reload=N` passes the query on to the modules of
 * the project that it imports: they are loaded again too. Packages in `node_modules` are not.
 */
const HOOK = `
let root = '';
export function initialize(given) {
  root = given;
}
export async function resolve(specifier, context, next) {
  const found = await next(specifier, context);
  const query = /[?&](reload=\\d+)$/.exec(context.parentURL ?? '')?.[1];
  if (!query || !found.url.startsWith(root) || found.url.includes('/node_modules/')) return found;
  return { ...found, url: found.url + (found.url.includes('?') ? '&' : '?') + query };
}
`;

export interface ModuleReloads {
  /** The query for the next import of the project's modules. */
  next(): string;
}

/**
 * @param directory - the project folder, absolute, without symbolic links
 * @throws CliError where the runtime can't load a module again
 */
export function reloadModules(directory: string): ModuleReloads {
  if (typeof nodeModule.register !== 'function')
    throw new CliError("this runtime can't load changed modules; --watch needs Node.js");
  const root = pathToFileURL(join(directory, sep)).href;
  nodeModule.register(`data:text/javascript,${encodeURIComponent(HOOK)}`, { data: root });
  const { cache } = createRequire(import.meta.url);
  let times = 0;
  return {
    next() {
      // CommonJS modules are kept by their paths.
      for (const path of Object.keys(cache))
        if (path.startsWith(join(directory, sep)) && !path.includes(`${sep}node_modules${sep}`)) delete cache[path];
      times += 1;
      return `?reload=${times}`;
    },
  };
}
