/** Compiles an `ensemble` step: an execution of its own. */

import { parseDuration } from '../duration.ts';
import type { EnsembleStep } from '../model/ensemble.ts';
import { checkTimeout } from './compile-waits.ts';
import type { CompiledEnsembleStep } from './compiled-ensemble.ts';
import { CHILD_TIMEOUT_RULE } from './flow-forms.ts';
import type { Level, StepPlace } from './flow-level.ts';
import { refuseSecrets } from './refuse-secrets.ts';

export function compileChild(step: EnsembleStep, place: StepPlace, level: Level): CompiledEnsembleStep {
  const { ensemble, name = ensemble, condition, timeout } = step;
  const { context, fields, names } = level;
  const at = (key: string) => [...place.path, key];
  context.calls.push({ ensemble, path: at('ensemble') });
  const input = fields.value(step.input ?? {}, at('input'));
  // It is stored, and people read it.
  refuseSecrets(input, at('input'), 'the input of another ensemble', context.host.secretNames, context.report);
  if (timeout !== undefined) checkTimeout(timeout, at('timeout'), level, CHILD_TIMEOUT_RULE);
  if ((typeof timeout === 'string' ? parseDuration(timeout) : timeout) === 0)
    context.report({ path: at('timeout'), message: 'must be above 0: nothing can end in no time' });
  const longest = timeout === undefined ? undefined : fields.value(timeout, at('timeout'));
  return {
    kind: 'ensemble',
    key: place.key,
    ensemble,
    slot: names.declare(name),
    condition: condition === undefined ? undefined : fields.guard(condition, at('condition')),
    input: input.evaluate,
    timeout: longest?.evaluate,
    readsState: input.readsState || (longest?.readsState ?? false),
    detached: step.detached ?? false,
    continueOnError: step.continueOnError ?? false,
  };
}
