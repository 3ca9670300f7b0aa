/** Compiles calls to closures. Only own properties of the function table can be called, with a valid number of arguments. */

import type { Json } from '../../base/json/json.ts';
import { suggestName } from '../../base/suggest-name.ts';
import type { CallNode } from '../syntax/ast.ts';
import type { CompileContext } from './compile-context.ts';
import type { Evaluate, Evaluation } from '../evaluation.ts';
import { failureAt } from '../evaluation-problem.ts';
import { ExpressionSyntaxError } from '../syntax/expression-syntax-error.ts';
import type { BuiltInFunction, ExpressionFunction } from '../functions/function-table.ts';

/**
 * @param before - the number of references before the references of the arguments
 * @throws ExpressionSyntaxError for an unknown function or a wrong number of arguments
 */
export function compileCall<E extends Evaluation>(
  node: CallNode,
  args: readonly Evaluate<E>[],
  before: number,
  context: CompileContext<E>,
): Evaluate<E> {
  const found = findFunction(node, context);
  const { site, references } = context;
  const { name, index } = node;
  if (found.impure) context.impure = true;
  if (found.showsArguments) {
    const inside = references.splice(before).map((reference) => ({ ...reference, shownBy: `${name}()` }));
    references.push(...inside);
  }
  if (found.isSecret) references.push({ name: `${name}()`, path: [], index, length: node.end - index });
  const call = (values: Json[], evaluation: E): Json => {
    try {
      return found.call(values, evaluation);
    } catch (error) {
      throw failureAt(site, index, error, `${name}(): `);
    }
  };
  const [first, second] = args;
  if (!first) return (evaluation) => call([], evaluation);
  if (args.length === 1) return (evaluation) => call([first(evaluation)], evaluation);
  if (args.length === 2 && second) return (evaluation) => call([first(evaluation), second(evaluation)], evaluation);
  return (evaluation) => {
    const values: Json[] = [];
    for (const argument of args) values.push(argument(evaluation));
    return call(values, evaluation);
  };
}

/** Functions of JavaScript and jq that take a function. */
const OF_LISTS: readonly string[] = [
  'map',
  'filter',
  'reduce',
  'find',
  'some',
  'every',
  'flatMap',
  'forEach',
  'select',
];
const FOR_LISTS = 'a `foreach` makes a list of results, and a script can do anything with a list';

function findFunction<E extends Evaluation>(
  node: CallNode,
  { functions, names }: Pick<CompileContext<E>, 'functions' | 'names'>,
): BuiltInFunction {
  const { name, index, args } = node;
  const found: BuiltInFunction | undefined = Object.hasOwn(functions, name) ? functions[name] : undefined;
  if (!found) {
    // No misspelling of max() or round().
    const isOther = OF_LISTS.includes(name);
    const suggestion = isOther ? undefined : suggestName(name, Object.keys(functions));
    const hint = suggestion ? `; did you mean ${suggestion}()?` : isOther ? `; ${FOR_LISTS}` : '';
    throw new ExpressionSyntaxError(`there is no function ${name}()${hint}`, index, name.length, suggestion);
  }
  if (args.length < found.minArgs || args.length > found.maxArgs) {
    const message = `${name}() takes ${describeArity(found)}, found ${args.length}`;
    throw new ExpressionSyntaxError(message, index, node.end - index);
  }
  const [first] = args;
  if (found.namesSignal && first?.kind === 'literal' && typeof first.value === 'string') {
    const unknown = names.unknownSignal?.(first.value);
    if (unknown)
      throw new ExpressionSyntaxError(unknown.problem, first.index, first.end - first.index, unknown.suggestion);
  }
  if (found.notConfigured !== undefined) {
    const error = new ExpressionSyntaxError(found.notConfigured, index, node.end - index);
    error.notConfigured = true;
    throw error;
  }
  return found;
}

function describeArity({ minArgs, maxArgs }: ExpressionFunction): string {
  const count = (n: number) => (n === 0 ? 'no arguments' : `${n} argument${n === 1 ? '' : 's'}`);
  if (minArgs === maxArgs) return count(minArgs);
  return maxArgs === Number.POSITIVE_INFINITY ? `at least ${count(minArgs)}` : `${minArgs} to ${count(maxArgs)}`;
}
