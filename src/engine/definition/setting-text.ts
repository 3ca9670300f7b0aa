/** Texts of settings that are evaluated when a definition is loaded: secrets and addresses, which may read variables alone. */

import { compileText } from '../expression/compile-text.ts';
import type { NameResolver } from '../expression/compiled-expression.ts';
import { ExpressionSyntaxError } from '../expression/expression-syntax-error.ts';
import type { Json } from '../json.ts';
import { unknownVariable } from './outermost-names.ts';
import type { Path } from './problem.ts';
import type { FlowContext } from './resolve-agent.ts';
import type { Scope } from './scope.ts';

const BUDGET = 10_000;

/**
 * @param what - what the text is, for messages
 * @param known - further names that it may read, which have no value yet, such as `timestamp` or `ensemble.name`
 * @returns its value; undefined when it is wrong, which is reported, and when it is not known at load
 */
export function readSetting(
  text: string,
  what: string,
  path: Path,
  { host, report }: Pick<FlowContext, 'host' | 'report'>,
  known: readonly string[] = [],
): Json | undefined {
  let isKnown = true;
  const later = (consumed: number) => {
    isKnown = false;
    return { read: () => null, consumed };
  };
  const names: NameResolver<Scope> = {
    hyphenated: [],
    resolve(name, [first]) {
      if (known.includes(name)) return later(0);
      if (known.includes(`${name}.${first}`)) return later(1);
      if (name !== 'env' || typeof first !== 'string') {
        return { problem: `${what} may read only ${['env.NAME', ...known].map((one) => `\`${one}\``).join(', ')}` };
      }
      if (Object.hasOwn(host.env, first)) return { read: () => host.env[first] as string, consumed: 1 };
      return host.lenient ? later(1) : unknownVariable(first, host.env);
    },
  };
  try {
    const { evaluate } = compileText(text, { names });
    if (!isKnown) return undefined;
    return evaluate({ budget: BUDGET, random: () => 0, now: () => 0, uuid: () => '' } as Scope);
  } catch (error) {
    if (!(error instanceof ExpressionSyntaxError)) throw error;
    report({ path, message: error.message, offset: error.index, length: error.length, suggestion: error.suggestion });
    return undefined;
  }
}
