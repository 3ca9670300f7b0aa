/** Reads a project's variables: all variables of `.env`, and the variables of the process that the config lists. */

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as util from 'node:util';
import { OrchestratorError } from '../engine/base/errors.ts';

export interface ProjectVariables {
  readonly env: Readonly<Record<string, string>>;
  readonly secrets: Readonly<Record<string, string>>;
  /** Names that the config lists and that have no value. */
  readonly absent: readonly string[];
}

/** The variables that the config lists. */
export interface VariableNames {
  readonly env: readonly string[];
  readonly secrets: readonly string[];
}

/**
 * A variable of the process overrides `.env`: the file has the values for development, and a deployment sets its own.
 *
 * @param directory - the project folder, absolute
 * @param names - the names in the config. Only these are read from the process
 * @param processEnv - the environment of the process
 * @throws NOT_CONFIGURED if there is a `.env`, and this runtime can't parse it
 */
export async function readVariables(
  directory: string,
  names: VariableNames,
  processEnv: Readonly<Record<string, string | undefined>>,
): Promise<ProjectVariables> {
  const file = await readDotEnv(directory);
  const secretNames = new Set(names.secrets);
  const env = new Map<string, string>();
  const secrets = new Map<string, string>();
  const absent: string[] = [];
  for (const [name, value] of Object.entries(file)) (secretNames.has(name) ? secrets : env).set(name, value ?? '');
  for (const name of new Set([...names.env, ...names.secrets])) {
    const into = secretNames.has(name) ? secrets : env;
    const value = processEnv[name];
    if (value !== undefined) into.set(name, value);
    else if (!into.has(name)) absent.push(name);
  }
  return { env: Object.fromEntries(env), secrets: Object.fromEntries(secrets), absent };
}

async function readDotEnv(directory: string): Promise<NodeJS.Dict<string>> {
  const text = await readFile(join(directory, '.env'), 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
  if (text === undefined) return {};
  // Some runtimes with Node's modules lack this function.
  if (typeof util.parseEnv === 'function') return util.parseEnv(text.replace(/^\ufeff/, ''));
  throw new OrchestratorError(
    'NOT_CONFIGURED',
    "this runtime can't read `.env` files; name the variables in the config's `env` instead",
  );
}
