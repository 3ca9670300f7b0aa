/** `signalUrl()`: the expression function that creates a link with which a person sends a signal. */

import { charge, EvaluationProblem } from '../../expression/evaluation-problem.ts';
import { textAt } from '../../expression/functions/arguments.ts';
import type { BuiltInFunction } from '../../expression/functions/function-table.ts';
import type { Json } from '../../base/json.ts';
import { NAME_PATTERN, NAME_RULE } from '../../model/name.ts';
import { signLink } from '../../signing/signal-link.ts';
import { readSignalPage } from './signal-page.ts';
import type { ExpressionScope } from '../../compiled/expression-scope.ts';

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
