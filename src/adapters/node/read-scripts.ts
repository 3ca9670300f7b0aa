/** Reads a project's `scripts` folder: every module's default export, under its path without extension. */

import { join } from 'node:path';
import { importDefault } from './import-default.ts';
import { listFiles } from './list-files.ts';
import type { ProjectProblem } from './project-problem.ts';

/** A script as the folder gives it; what it takes and gives is typed where it is registered. */
// biome-ignore lint/suspicious/noExplicitAny: a script's context belongs to the `code` operation, which adapters can't see
export type ProjectScript = (context: any) => unknown;

export interface ProjectScripts {
  readonly scripts: Readonly<Record<string, ProjectScript>>;
  readonly files: readonly string[];
  readonly problems: readonly ProjectProblem[];
}

const isScript = (name: string) => /\.(?:js|mjs|ts)$/.test(name) && !/\.d\.ts$|\.(?:test|spec)\.\w+$/.test(name);

/** @param directory - the project folder, absolute */
export async function readScripts(directory: string): Promise<ProjectScripts> {
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
    const imported = await importDefault(directory, file);
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
  return `${found}; a script is \`export default (context) => output\` (begin the name of a file that is no script with \`_\`)`;
}
