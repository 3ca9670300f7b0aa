/** The functions that every expression may call, and the way in which a host adds its own functions. */

import { copySized, type Json } from '../../base/json/json.ts';
import type { Evaluation } from '../evaluation.ts';
import { charge } from '../evaluation-problem.ts';
import { arrowFunctions } from './arrow-functions.ts';
import type { BuiltInFunction, ExpressionFunction, FunctionTable } from './function-table.ts';
import { hashFunctions } from './hash-functions.ts';
import { listFunctions } from './list-functions.ts';
import { numberFunctions } from './number-functions.ts';
import { textFunctions } from './text-functions.ts';
import { timeFunctions } from './time-functions.ts';
import { valueFunctions } from './value-functions.ts';

const runFunctions = {
  random: { minArgs: 0, maxArgs: 0, impure: true, call: (_args, evaluation) => evaluation.random() },
  now: { minArgs: 0, maxArgs: 0, impure: true, call: (_args, evaluation) => evaluation.now() },
  uuid: { minArgs: 0, maxArgs: 0, impure: true, call: (_args, evaluation) => evaluation.uuid() },
  signalUrl: {
    minArgs: 1,
    maxArgs: 3,
    impure: true,
    namesSignal: true,
    notConfigured:
      'signalUrl() needs the public address of the service and a secret; pass `signalLinks: { url, secret }` to createOrchestrator',
    call: () => null,
  },
} satisfies Record<string, BuiltInFunction>;

export const builtinFunctions: FunctionTable = Object.freeze({
  ...runFunctions,
  ...textFunctions,
  ...valueFunctions,
  ...listFunctions,
  ...arrowFunctions,
  ...numberFunctions,
  ...timeFunctions,
  ...hashFunctions,
});

/** Whether a built-in function returns a different value at each call. */
export function isImpure(name: string): boolean {
  return Object.hasOwn(runFunctions, name);
}

/**
 * Adds the functions of a host to the built-in functions. They receive copies, and their results are copied to plain JSON.
 *
 * @param configured - replacements for built-in functions that the host must configure
 * @throws TypeError for a name that is built in or can't be written in an expression, and for an invalid number of arguments
 */
export function extendFunctions(own: FunctionTable, configured: FunctionTable = {}): FunctionTable {
  const table: Record<string, ExpressionFunction> = { ...builtinFunctions, ...configured };
  for (const [name, definition] of Object.entries(own)) {
    if (!/^[A-Za-z][A-Za-z0-9_]{0,63}$/.test(name) || ['true', 'false', 'null'].includes(name)) {
      throw new TypeError(
        `functions.${name} can't be called in an expression; use letters, digits and _, a letter first`,
      );
    }
    if (Object.hasOwn(builtinFunctions, name)) throw new TypeError(`functions.${name} is built in; use another name`);
    table[name] = isolate(name, definition);
  }
  return Object.freeze(table);
}

function isolate(name: string, definition: ExpressionFunction): ExpressionFunction {
  const { minArgs, maxArgs, impure = false, returns, call } = definition;
  const isArity = Number.isInteger(minArgs) && minArgs >= 0 && (Number.isInteger(maxArgs) || maxArgs === Infinity);
  if (!isArity || maxArgs < minArgs) {
    throw new TypeError(
      `functions.${name}: minArgs and maxArgs must be whole numbers, and minArgs must not be greater than maxArgs`,
    );
  }
  if (typeof call !== 'function')
    throw new TypeError(`functions.${name}.call must be a function (args, evaluation) => value`);
  return {
    minArgs,
    maxArgs,
    impure,
    returns,
    // Without a copy, a function that sorts its argument in place would change the stored result of a step.
    call: (args, evaluation): Json => {
      const copies = args.map((argument) => chargedCopy(argument, evaluation));
      return chargedCopy(call(copies, evaluation), evaluation);
    },
  };
}

function chargedCopy(value: unknown, evaluation: Evaluation): Json {
  const copied = copySized(value);
  charge(evaluation, copied.bytes >> 3);
  return copied.value;
}
