/** Evaluates settings when a definition is loaded: secrets and addresses, which may read only variables. */

import type { Json } from '../../../base/json/json.ts';
import type { ExpressionScope } from '../../../compiled/expression-scope.ts';
import { compileText } from '../../../expression/compile/compile-text.ts';
import type { NameResolver } from '../../../expression/compile/compiled-expression.ts';
import { ExpressionSyntaxError } from '../../../expression/syntax/expression-syntax-error.ts';
import type { Path } from '../../source/problem.ts';
import { unknownVariable } from '../names/outermost-names.ts';
import type { FlowContext } from '../resolve-agent.ts';

const BUDGET = 10_000;

/**
 * Begins the value of a variable that is named, but has no value here: a check of definitions does without it. The sign belongs to no
 * character, so no text of a user begins with it.
 */
const ASSUMED = '\ufdd0';

export function assumedValue(name: string): string {
  return `${ASSUMED}value of ${name}`;
}

/** Whether a setting has a part that is not known here, so that its form says nothing. */
export function isAssumed(setting: Json): boolean {
  return typeof setting === 'string' && setting.includes(ASSUMED);
}

type SettingContext = Pick<FlowContext, 'host' | 'report'>;

/** What a setting may read besides variables, such as `timestamp` or `ensemble.name`, from fields that are known later. */
export type LaterNames<Fields> = Readonly<Record<string, (fields: Fields) => Json>>;

interface FieldScope<Fields> extends ExpressionScope {
  /** Undefined when a definition is loaded. */
  readonly fields: Fields | undefined;
}

/**
 * @param what - the name of the setting, for messages
 * @returns the value; undefined when the setting is wrong, which is reported, or when its value is not known here
 */
export function readSetting(text: string, what: string, path: Path, context: SettingContext): Json | undefined {
  const setting = compileSetting<undefined>(text, what, path, context, {});
  return setting?.isKnown ? setting.evaluate(undefined) : undefined;
}

/**
 * @param later - the names that the setting may read besides variables
 * @returns how it is evaluated, and whether its value is known at load. Undefined when it is wrong, which is reported
 */
export function compileSetting<Fields>(
  text: string,
  what: string,
  path: Path,
  { host, report }: SettingContext,
  later: LaterNames<Fields>,
): { readonly evaluate: (fields: Fields) => Json; readonly isKnown: boolean } | undefined {
  let isKnown = true;
  const readLater = (read: (fields: Fields) => Json, consumed: number) => {
    isKnown = false;
    return {
      read(scope: ExpressionScope) {
        const { fields } = scope as FieldScope<Fields>;
        return fields === undefined ? null : read(fields);
      },
      consumed,
    };
  };
  const names: NameResolver<ExpressionScope> = {
    hyphenated: [],
    resolve(name, [first]) {
      for (const [consumed, key] of [name, `${name}.${first}`].entries()) {
        const read = Object.hasOwn(later, key) ? later[key] : undefined;
        if (read) return readLater(read, consumed);
      }
      if (name !== 'env' || typeof first !== 'string') {
        const known = ['env.NAME', ...Object.keys(later)].map((one) => `\`${one}\``);
        return { problem: `${what} may read only ${known.join(', ')}` };
      }
      if (Object.hasOwn(host.env, first)) return { read: () => host.env[first] as string, consumed: 1 };
      return host.lenient ? readLater(() => null, 1) : unknownVariable(first, host);
    },
  };
  const scope = { budget: BUDGET, random: () => 0, now: () => 0, uuid: () => '' };
  try {
    const { evaluate } = compileText(text, { names });
    const evaluateWith = (fields: Fields) => evaluate({ ...scope, fields } as unknown as FieldScope<Fields>);
    return { evaluate: evaluateWith, isKnown };
  } catch (error) {
    if (!(error instanceof ExpressionSyntaxError)) throw error;
    report({ path, message: error.message, offset: error.index, length: error.length, suggestion: error.suggestion });
    return undefined;
  }
}
