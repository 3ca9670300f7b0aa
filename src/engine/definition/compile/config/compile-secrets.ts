/** Secrets of webhooks and notifications: one text, or a list of them during a rotation. They must be known at load. */

import type { Path } from '../../source/problem.ts';
import type { FlowContext } from '../resolve-agent.ts';
import { isAssumed, readSetting } from './setting-text.ts';

/** What a kind of secrets asks of each. */
export interface SecretRules {
  /** What an empty secret would do, for its message. */
  readonly emptiness: string;
  /** What is wrong with the form of a secret. */
  problem?(secret: string): string | undefined;
}

const INVISIBLE = /[\s\u200b-\u200f\u2060\ufeff]/g;
const VARIABLE = /\$\{\s*env\.([A-Za-z_]\w*)\s*\}/g;

type SecretContext = Pick<FlowContext, 'host' | 'report'>;

/** @returns those that are known and not empty */
export function compileSecrets(
  given: string | readonly string[] | undefined,
  path: Path,
  context: SecretContext,
  rules: SecretRules,
): readonly string[] {
  if (given === undefined) return [];
  if (typeof given === 'string') return compileSecret(given, path, context, rules) ?? [];
  return given.flatMap((text, i) => compileSecret(text, [...path, i], context, rules) ?? []);
}

function compileSecret(
  text: string,
  path: Path,
  context: SecretContext,
  { emptiness, problem }: SecretRules,
): string[] | undefined {
  const value = readSetting(text, 'a secret', path, context);
  if (value === undefined) return undefined;
  if (isAssumed(value)) return [String(value)];
  if (typeof value !== 'string' || value.replace(INVISIBLE, '') === '') {
    context.report({ path, message: `is an empty secret, ${emptiness}; set one` });
    return undefined;
  }
  const empty = [...text.matchAll(VARIABLE)].find(([, name = '']) => context.host.env[name] === '')?.[1];
  if (empty !== undefined) context.report({ path, message: `the variable \`${empty}\` is empty; set it` });
  const message = problem?.(value);
  if (message !== undefined) context.report({ path, message });
  if (value === text) {
    const warning = 'is stored with the definition, where everyone reads it who may read ensembles; use `${env.NAME}`';
    context.report({ path, message: warning, warning: true });
  }
  return [value];
}
