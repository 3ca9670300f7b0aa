/** Evaluates settings when a definition is loaded: secrets and addresses, which may read only variables. */

import { compileText } from '../../expression/compile-text.ts';
import type { NameResolver } from '../../expression/compiled-expression.ts';
import { ExpressionSyntaxError } from '../../expression/expression-syntax-error.ts';
import type { Json } from '../../base/json.ts';
import { unknownVariable } from './outermost-names.ts';
import type { Path } from '../source/problem.ts';
import type { FlowContext } from './resolve-agent.ts';
import type { ExpressionScope } from '../../compiled/expression-scope.ts';

const BUDGET = 10_000;

/**
 * @param what - the name of the setting, for messages
 * @param known - more names that the setting may read and that have no value at load, such as `timestamp` or `ensemble.name`
 * @returns the value; undefined when the setting is wrong, which is reported, or when its value is not known at load
 */
export function readSetting(
  text: string,
  what: string,
  path: Path,
  { host, report }: Pick<FlowContext, 'host' | 'report'>,
  known: readonly string[] = [],
): Json | undefined {
  let isKnownAtLoad = true;
  const later = (consumed: number) => {
    isKnownAtLoad = false;
    return { read: () => null, consumed };
  };
  const names: NameResolver<ExpressionScope> = {
    hyphenated: [],
    resolve(name, [first]) {
      if (known.includes(name)) return later(0);
      if (known.includes(`${name}.${first}`)) return later(1);
      if (name !== 'env' || typeof first !== 'string') {
        return { problem: `${what} may read only ${['env.NAME', ...known].map((one) => `\`${one}\``).join(', ')}` };
      }
      if (Object.hasOwn(host.env, first)) return { read: () => host.env[first] as string, consumed: 1 };
      return host.lenient ? later(1) : unknownVariable(first, host);
    },
  };
  try {
    const { evaluate } = compileText(text, { names });
    if (!isKnownAtLoad) return undefined;
    return evaluate({ budget: BUDGET, random: () => 0, now: () => 0, uuid: () => '' } as ExpressionScope);
  } catch (error) {
    if (!(error instanceof ExpressionSyntaxError)) throw error;
    report({ path, message: error.message, offset: error.index, length: error.length, suggestion: error.suggestion });
    return undefined;
  }
}
