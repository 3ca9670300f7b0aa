/** `signalUrl()`: the expression function that creates a link with which a person sends a signal. */

import { isMap } from '../../../base/json/is-map.ts';
import type { Json, JsonObject } from '../../../base/json/json.ts';
import type { ExpressionScope } from '../../../compiled/expression-scope.ts';
import { NAME_PATTERN, NAME_RULE } from '../../../ensemble/name.ts';
import { charge, EvaluationProblem } from '../../../expression/evaluation-problem.ts';
import { textAt } from '../../../expression/functions/arguments.ts';
import type { BuiltInFunction } from '../../../expression/functions/function-table.ts';
import { checkJsonSchema } from '../../../json-schema/check-json-schema.ts';
import { isAskedPlainly, PLAIN_TYPES } from '../../../signal/form-field.ts';
import type { SignalPage } from '../../../signal/signal-page.ts';
import { signLink } from '../../../signing/signal-link.ts';

/** Mail programs and proxies cut or refuse longer links. */
const MAX_LINK_LENGTH = 2_000;

/**
 * The function for hosts that set `signalLinks`. Without this option, a definition that calls `signalUrl()` is refused at load.
 *
 * @param url - the part of the link before `/signals/`, without a slash at its end
 */
export function signalUrlFunction(url: string, secret: string): BuiltInFunction {
  return {
    minArgs: 1,
    maxArgs: 3,
    impure: true,
    isSecret: true,
    namesSignal: true,
    showsArguments: true,
    call(args, evaluation) {
      const name = textAt(args, 0);
      if (!NAME_PATTERN.test(name)) throw new EvaluationProblem(`argument 1 must be a signal's name: ${NAME_RULE}`);
      const payload: Json = args[1] ?? null;
      const page = args[2] == null ? undefined : readSignalPage(args[2], payload);
      if (typeof page === 'string') throw new EvaluationProblem(`argument 3 ${page}`);
      // The interpreter always passes an ExpressionScope. All fields of a step get the same link for the same arguments.
      const { run, place, lastCommitAt: madeAt } = evaluation as ExpressionScope;
      const token = signLink({ executionId: run.execution.id as string, name, payload, place, madeAt, page }, secret);
      charge(evaluation, token.length);
      const link = `${url}/signals/${token}`;
      if (link.length <= MAX_LINK_LENGTH) return link;
      throw new EvaluationProblem(
        `the link would have ${link.length} characters, at most ${MAX_LINK_LENGTH} are allowed; put less into the payload and the page`,
      );
    },
  };
}

const TEXTS: readonly string[] = ['title', 'text', 'confirm'];
const KEYS: readonly string[] = [...TEXTS, 'fields'];

/** @returns the page, or what is wrong with it. The payload gets the fields, so no field is a key of it */
function readSignalPage(given: Json, payload: Json): SignalPage | string {
  if (!isMap(given)) return 'must be an object with `title`, `text`, `confirm` and `fields`';
  const unknown = Object.keys(given).find((key) => !KEYS.includes(key));
  if (unknown !== undefined) return `has the unknown key \`${unknown}\`; its keys are ${KEYS.join(', ')}`;
  const wrong = TEXTS.find((key) => given[key] !== undefined && typeof given[key] !== 'string');
  if (wrong !== undefined) return `\`${wrong}\` must be text`;
  const problem = given.fields === undefined ? undefined : fieldsProblem(given.fields, payload);
  return problem ?? (given as SignalPage);
}

function fieldsProblem(fields: Json, payload: Json): string | undefined {
  const properties = isMap(fields) && fields.type === 'object' ? fields.properties : undefined;
  if (!isMap(properties)) return '`fields` must be a JSON Schema with `type: object` and `properties`';
  if (payload !== null && !isMap(payload))
    return '`fields` need a payload that is an object, or null: they are added to it';
  for (const [name, schema] of Object.entries(properties)) {
    if (isMap(payload) && Object.hasOwn(payload, name)) return `field \`${name}\` is a key of the payload already`;
    if (!isMap(schema) || !isAskedPlainly(schema))
      return `field \`${name}\` must have an \`enum\`, or one of the types ${PLAIN_TYPES.join(', ')}`;
  }
  const problems: string[] = [];
  checkJsonSchema(fields as JsonObject, ['fields'], ({ message }) => problems.push(message));
  return problems[0] && `\`fields\` is not a valid JSON Schema: it ${problems[0]}`;
}
