/** `ensemble schema`: prints the JSON Schema of definition files, with the names of a project if one is given. */

import { resolve } from 'node:path';
import { editorSchema, openToCheck, projectNames } from '../start.ts';
import type { Output } from '../terminal/output.ts';
import { printJson } from '../terminal/text.ts';

export interface SchemaOptions {
  readonly dir?: string;
}

/**
 * @returns the exit code
 * @throws NOT_FOUND when the project folder does not exist or has no ensemble
 */
export async function schema({ dir }: SchemaOptions, output: Output, cwd: string): Promise<number> {
  const opened = dir === undefined ? undefined : await openToCheck(resolve(cwd, dir));
  output.print(`${printJson(opened ? editorSchema(projectNames(opened.options), opened.options) : editorSchema())}\n`);
  return 0;
}
