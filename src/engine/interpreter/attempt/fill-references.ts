/** Puts the texts of components into the config of an agent, before an attempt. An execution keeps the version to which a reference led first. */

import { OrchestratorError } from '../../base/errors.ts';
import { andThen, isPromise, type MaybePromise } from '../../base/maybe-promise.ts';
import type { CompiledAgentStep, CompiledReferences } from '../../compiled/compiled-ensemble.ts';
import type { ResolvedComponent } from '../../component/component.ts';
import type { Resolution } from '../../component/component-source.port.ts';
import type { Attempt } from './attempt.ts';
import type { Run } from '../run.ts';

/** @throws VERSION_NOT_FOUND; INVALID_DEFINITION for a text that can't be used; what the source of the components throws */
export function fillReferences(
  { step, scope, key }: Attempt,
  references: CompiledReferences,
): MaybePromise<CompiledAgentStep> {
  const texts = references.all.map((evaluate) => String(evaluate(scope.begin(key, 'components'))));
  const prompt = step.takesPrompt ? scope.findPrompt() : undefined;
  if (prompt?.isReference) texts.push(prompt.text);
  const found = texts.map((text) => resolve(text, scope.run));
  const fill = (components: readonly ResolvedComponent[]) => references.fill(step, components);
  return found.some((one) => isPromise(one)) ? Promise.all(found).then(fill) : fill(found as ResolvedComponent[]);
}

const componentOf = ({ component }: Resolution) => component;

function resolve(reference: string, run: Run): MaybePromise<ResolvedComponent> {
  const { journal, ports } = run;
  if (!ports.resolveComponent)
    throw new OrchestratorError('NOT_CONFIGURED', `there are no components here, and the config reads ${reference}`);
  const pinned = journal.pinned(reference);
  if (pinned) return andThen(ports.resolveComponent(`${pinned.kind}://${pinned.name}@${pinned.version}`), componentOf);
  const subject = { input: run.input, executionId: run.accepted.id };
  return andThen(ports.resolveComponent(reference, subject), (resolution) => {
    // Another branch may have come first.
    const first = journal.pinned(reference);
    if (first && first.version !== resolution.component.version) return resolve(reference, run);
    if (!first) journal.pin(reference, resolution.used);
    return resolution.component;
  });
}
