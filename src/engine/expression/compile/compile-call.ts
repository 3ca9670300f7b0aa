/** Compiles calls to closures. Only own properties of the function table can be called, with a valid number of arguments. */

import type { Json } from '../../base/json/json.ts';
import { suggestName } from '../../base/suggest-name.ts';
import type { Evaluate, Evaluation } from '../evaluation.ts';
import { failureAt } from '../evaluation-problem.ts';
import type { Apply, BuiltInFunction, ExpressionFunction } from '../functions/function-table.ts';
import type { CallNode, Node } from '../syntax/ast.ts';
import { ExpressionSyntaxError } from '../syntax/expression-syntax-error.ts';
import type { CompileContext } from './compile-context.ts';

/**
 * @param args - without the arrow
 * @param before - the number of references before the references of the arguments
 * @throws ExpressionSyntaxError for an unknown function or a wrong number of arguments
 */
export function compileCall<E extends Evaluation>(
  node: CallNode,
  args: readonly Evaluate<E>[],
  arrow: ((evaluation: E) => Apply) | undefined,
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
      return found.call(values, evaluation, arrow?.(evaluation));
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

/** Functions of JavaScript and jq that take a function, and what does the same. */
const OF_LISTS: Readonly<Record<string, string>> = {
  reduce: 'sumBy() adds, and a script can do anything with a list',
  flatMap: 'write flatten(map(list, x => ...))',
  forEach: 'a `foreach` runs steps for each element',
  select: 'write filter(list, x => ...)',
};

function findFunction<E extends Evaluation>(
  node: CallNode,
  { functions, names }: Pick<CompileContext<E>, 'functions' | 'names'>,
): BuiltInFunction {
  const { name, index, args } = node;
  const found: BuiltInFunction | undefined = Object.hasOwn(functions, name) ? functions[name] : undefined;
  if (!found) {
    // No misspelling of max() or round().
    const instead = Object.hasOwn(OF_LISTS, name) ? OF_LISTS[name] : undefined;
    const suggestion = instead ? undefined : suggestName(name, Object.keys(functions));
    const hint = suggestion ? `; did you mean ${suggestion}()?` : instead ? `; ${instead}` : '';
    throw new ExpressionSyntaxError(`there is no function ${name}()${hint}`, index, name.length, suggestion);
  }
  if (args.length < found.minArgs || args.length > found.maxArgs) {
    const message = `${name}() takes ${describeArity(found)}, found ${args.length}`;
    throw new ExpressionSyntaxError(message, index, node.end - index);
  }
  const arrowAt = args.findIndex(({ kind }) => kind === 'arrow');
  const others = args.filter(({ kind }, i) => kind === 'arrow' && i !== 1);
  if (found.takesArrow ? arrowAt !== 1 || others.length > 0 : arrowAt >= 0) {
    const message = found.takesArrow
      ? `argument 2 of ${name}() must be an arrow, as in ${name}(list, x => x.id)`
      : `${name}() takes no arrow; arrows are for functions over a list, such as map(list, x => x.id)`;
    const at = found.takesArrow ? (others[0] ?? args[1] ?? node) : (args[arrowAt] as Node);
    throw new ExpressionSyntaxError(message, at.index, at.end - at.index);
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
