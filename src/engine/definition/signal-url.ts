/** `signalUrl()`: the function of expressions that makes a link by which a person gives a signal. */

import { charge, EvaluationProblem } from '../expression/evaluation-problem.ts';
import { textAt } from '../expression/functions/arguments.ts';
import type { BuiltInFunction } from '../expression/functions/function-table.ts';
import type { Json } from '../json.ts';
import { NAME_PATTERN, NAME_RULE } from '../model/name.ts';
import { signLink } from '../signing/signal-link.ts';
import type { Scope } from './scope.ts';

/** Mail programs and proxies cut off, or refuse, what is longer. */
const LONGEST_LINK = 2_000;

/**
 * The function for hosts that set `signalLinks`; without it, the built-in one is refused when a definition is loaded.
 *
 * @param url - what stands in front of `/signals/`, without a slash at its end
 */
export function signalUrlFunction(url: string, secret: string): BuiltInFunction {
  return {
    minArgs: 1,
    maxArgs: 2,
    impure: true,
    isSecret: true,
    namesSignal: true,
    showsArguments: true,
    call(args, evaluation) {
      const name = textAt(args, 0);
      if (!NAME_PATTERN.test(name)) throw new EvaluationProblem(`argument 1 must be a signal's name: ${NAME_RULE}`);
      const payload: Json = args[1] ?? null;
      // The interpreter hands in nothing else; what a step made is the same link in each of its fields.
      const { run, place, lastCommitAt: madeAt } = evaluation as Scope;
      const token = signLink({ executionId: run.execution.id as string, name, payload, place, madeAt }, secret);
      charge(evaluation, token.length);
      const link = `${url}/signals/${token}`;
      if (link.length <= LONGEST_LINK) return link;
      throw new EvaluationProblem(
        `the link would have ${link.length} characters, at most ${LONGEST_LINK} are allowed; put less into the payload`,
      );
    },
  };
}
