/** Reads a project's `scripts` folder: the default export of each module, by its path without extension. */

import { join } from 'node:path';
import { importDefault } from './import-default.ts';
import { listFiles } from './list-files.ts';

/** A problem of one file of a project folder, apart from the definitions. */
export interface ProjectProblem {
  /** Relative to the project folder, with `/`. */
  readonly file: string;
  readonly message: string;
}

/** A script of the folder. Its types are known where it is registered. */
// biome-ignore lint/suspicious/noExplicitAny: a script's context belongs to the `code` operation, which adapters can't see
export type ProjectScript = (context: any) => unknown;

export interface ProjectScripts {
  readonly scripts: Readonly<Record<string, ProjectScript>>;
  readonly files: readonly string[];
  readonly problems: readonly ProjectProblem[];
}

const isScript = (name: string) => /\.(?:js|mjs|ts)$/.test(name) && !/\.d\.ts$|\.(?:test|spec)\.\w+$/.test(name);

/**
 * @param directory - the project folder, absolute
 * @param query - see `importDefault`
 */
export async function readScripts(directory: string, query: string): Promise<ProjectScripts> {
  const files = (await listFiles(join(directory, 'scripts'), isScript, true)).map((path) => `scripts/${path}`);
  const byName = new Map<string, string>();
  const scripts: [string, ProjectScript][] = [];
  const problems: ProjectProblem[] = [];
  for (const file of files) {
    const name = file.slice('scripts/'.length).replace(/\.\w+$/, '');
    const other = byName.get(name);
    if (other !== undefined) {
      problems.push({ file, message: `is script \`${name}\`, and so is ${other}; rename one of them` });
      continue;
    }
    byName.set(name, file);
    const imported = await importDefault(directory, file, query);
    if ('problem' in imported) problems.push({ file, message: imported.problem });
    else if (typeof imported.value === 'function') scripts.push([name, imported.value as ProjectScript]);
    else problems.push({ file, message: explainNoScript(imported.value) });
  }
  return { scripts: Object.fromEntries(scripts), files, problems };
}

function explainNoScript(value: unknown): string {
  const found =
    value === undefined
      ? 'has no default export'
      : `exports ${value === null ? 'null' : `a value of type ${typeof value}`} by default`;
  return `${found}; a script is \`export default (context) => output\` (begin the name of a file that is not a script with \`_\`)`;
}
