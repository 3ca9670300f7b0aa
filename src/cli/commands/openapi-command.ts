/** `ensemble openapi`: prints the OpenAPI document of the API. */

import { brandOf } from '../service/open-store.ts';
import * as start from '../start.ts';
import { wrongUsage } from '../terminal/cli-error.ts';
import type { Output } from '../terminal/output.ts';
import { printJson } from '../terminal/text.ts';

export interface OpenApiOptions {
  readonly dir?: string;
  readonly basePath?: string;
}

/** @returns the exit code */
export async function openApi({ dir, basePath = '' }: OpenApiOptions, output: Output, cwd: string): Promise<number> {
  try {
    output.print(`${printJson(await start.openApiOf(basePath, await brandOf(cwd, dir)))}\n`);
  } catch (thrown) {
    if (thrown instanceof TypeError) throw wrongUsage(`--base-path: ${thrown.message}`);
    throw thrown;
  }
  return 0;
}
