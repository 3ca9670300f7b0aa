/** Reads the input and the variables of a run from the command line. */

import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { messageOf } from '../../engine/base/errors.ts';
import { CliError, wrongUsage } from '../terminal/cli-error.ts';
import { oneLine } from '../terminal/text.ts';

/**
 * @param given - JSON, `@` and a file, or `@-` for standard input
 * @param settings - `option`: the name of the option, for messages; `empty`: the value without the option
 * @throws CliError for a file that can't be read, and for text that is not JSON
 */
export async function readInput(
  given: string | undefined,
  cwd: string,
  stdin: AsyncIterable<Uint8Array | string>,
  { option = '--input', empty = {} }: { readonly option?: string; readonly empty?: unknown } = {},
): Promise<unknown> {
  if (given === undefined) return empty;
  if (!given.startsWith('@')) return parse(given, option);
  const path = given.slice(1);
  if (path === '') throw wrongUsage(`${option} @ needs the name of a file after the @, or \`-\` for standard input`);
  const text = await readText(path, cwd, stdin, `${option} @${path}`);
  return parse(text, path === '-' ? 'standard input' : path);
}

/**
 * @param path - of a file, or `-` for standard input
 * @param given - how the command line names it, for messages
 * @throws CliError for a file that can't be read
 */
export async function readText(
  path: string,
  cwd: string,
  stdin: AsyncIterable<Uint8Array | string>,
  given: string,
): Promise<string> {
  if (path === '-') return readAll(stdin);
  return readFile(resolve(cwd, path), 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new CliError(
      error.code === 'ENOENT' ? `there is no file ${path} (${given})` : `${path} can't be read: ${error.message}`,
    );
  });
}

function parse(text: string, where: string): unknown {
  try {
    return JSON.parse(text.replace(/^\ufeff/, ''));
  } catch (error) {
    const hint = where.startsWith('--') ? `; write ${where} '{"key": "value"}', or ${where} @file.json` : '';
    throw wrongUsage(`${where} is not JSON: ${oneLine(messageOf(error))}${hint}`);
  }
}

async function readAll(stdin: AsyncIterable<Uint8Array | string>): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const chunk of stdin) text += typeof chunk === 'string' ? chunk : decoder.decode(chunk, { stream: true });
  return text + decoder.decode();
}

/** The named variables of the process. @throws CliError for a variable that is not set */
export function readEnv(
  names: readonly string[],
  processEnv: Readonly<Record<string, string | undefined>>,
): Record<string, string> {
  const env: Record<string, string> = {};
  for (const name of names) {
    if (name.includes('=')) {
      const [before] = name.split('=');
      throw wrongUsage(
        `--env takes the name of a variable, not its value: set ${before} in the shell and write --env ${before}`,
      );
    }
    const value = processEnv[name];
    if (value === undefined) throw new CliError(`--env names ${name}, which is not set`);
    env[name] = value;
  }
  return env;
}
