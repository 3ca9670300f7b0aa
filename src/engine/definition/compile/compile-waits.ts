/** Compiles the steps that wait for an instant or for a signal. */

import { isMap } from '../../base/json/is-map.ts';
import { canonicalJson } from '../../base/json/json.ts';
import { MAX_SLEEP_MS, nearestDuration, parseDuration } from '../../base/time/duration.ts';
import { describeValue } from '../../base/wording.ts';
import type { CompiledSleepStep, CompiledWaitStep } from '../../compiled/compiled-ensemble.ts';
import type { SleepStep, WaitStep } from '../../ensemble/ensemble.ts';
import { NAME_PATTERN } from '../../ensemble/name.ts';
import { parseInstant } from '../../expression/functions/instant.ts';
import { schemaIssues } from '../../json-schema/check-by-schema.ts';
import type { Report } from '../forms/check-shape.ts';
import { DURATION_RULE, INSTANT_RULE, SIGNAL_RULE, TIMEOUT_RULE } from '../forms/flow-forms.ts';
import type { Path } from '../source/problem.ts';
import { resultOf } from './compile-blocks.ts';
import type { CompiledField } from './config/compile-fields.ts';
import { bracesIn } from './names/double-braces.ts';
import type { Level, StepPlace } from './names/flow-level.ts';
import type { FlowContext } from './resolve-agent.ts';

export function compileSleep(step: SleepStep, place: StepPlace, level: Level): CompiledSleepStep {
  const { sleep } = step;
  const isInstant = typeof sleep === 'object';
  const given = isInstant ? sleep.until : sleep;
  const path = [...place.path, 'sleep', ...(isInstant ? ['until'] : [])];
  if (isInstant) checkInstant(given, path, level);
  else checkDuration(given, path, level, DURATION_RULE, isInstantText(given) ? `until: ${given}` : undefined);
  const { evaluate, readsState } = level.fields.value(given, path, { templates: !isExpression(given) });
  return { kind: 'sleep', key: place.key, ...resultOf(step, place, level, readsState), value: evaluate, isInstant };
}

// Checks an instant without an expression, which is known at load.
function checkInstant(given: string | number, path: Path, { context }: Level): void {
  if (isExpression(given) || reportBraces(given, path, context.report) || isInstantText(given)) return;
  const isDuration = typeof given === 'string' && parseDuration(given) !== undefined;
  const suggestion = isDuration ? `sleep: ${given}` : undefined;
  context.report({ path, message: `${INSTANT_RULE}, not ${describeValue(given)}`, suggestion });
}

/**
 * Checks a duration without an expression, which is known at load.
 *
 * @param rule - the start of the message
 * @param instead - what to suggest for a text that is not a duration. Default: a duration that is written similarly
 */
function checkDuration(given: string | number, path: Path, { context }: Level, rule: string, instead?: string): void {
  if (isExpression(given) || reportBraces(given, path, context.report)) return;
  const ms = typeof given === 'string' ? parseDuration(given) : given;
  if (ms !== undefined && ms <= MAX_SLEEP_MS) return;
  if (ms !== undefined) context.report({ path, message: `must be at most ten years, not ${describeValue(given)}` });
  else {
    const suggestion = instead ?? nearestDuration(String(given));
    context.report({ path, message: `${rule}, not ${describeValue(given)}`, suggestion });
  }
}

function isExpression(given: string | number): boolean {
  return typeof given === 'string' && given.includes('${');
}

// `{{ x }}` instead of a duration or an instant.
function reportBraces(given: string | number, path: Path, report: Report): boolean {
  const braces = typeof given === 'string' ? bracesIn(given) : undefined;
  if (braces) report({ path, ...braces });
  return braces !== undefined;
}

function isInstantText(given: string | number): boolean {
  try {
    parseInstant(given);
    return true;
  } catch {
    return false;
  }
}

export function compileWait(step: WaitStep, place: StepPlace, level: Level): CompiledWaitStep {
  const { wait: signal, timeout, onTimeout } = step;
  const { report, dropped } = level.context;
  const at = (key: string): Path => [...place.path, key];
  if (!NAME_PATTERN.test(signal)) {
    const suggestion = parseDuration(signal) === undefined ? undefined : `sleep: ${signal}`;
    report({ path: at('wait'), message: `${SIGNAL_RULE}, not ${describeValue(signal)}`, suggestion });
  }
  if (timeout === undefined && onTimeout !== undefined && !dropped(at('timeout'))) {
    report({
      path: at('onTimeout'),
      key: true,
      message: 'needs a `timeout` in the same step: without one, the wait has no end',
    });
  }
  checkForm(step, place.path, level.context);
  const value = timeout === undefined ? undefined : compileTimeout(timeout, at('timeout'), level);
  return {
    kind: 'wait',
    key: place.key,
    ...resultOf(step, place, level, value?.readsState),
    signal,
    timeout: value?.evaluate,
    continues: onTimeout === 'continue',
  };
}

/** Checks the form of a signal: what its waits say of it must be the same. */
function checkForm(step: WaitStep, path: Path, { report, signalForms }: FlowContext): void {
  const { wait: signal, fields, title, text } = step;
  for (const [key, value] of Object.entries({ title, text })) {
    if (value === undefined || !/\$\{|\{\{/.test(value)) continue;
    const message = `must be plain text, because it is shown before the wait begins; write a text with values in the third argument of \`signalUrl('${signal}', ...)\``;
    report({ path: [...path, key], message });
  }
  if (fields !== undefined) {
    const at = [...path, 'fields'];
    if (fields.type !== 'object' || !isMap(fields.properties))
      report({ path: at, message: 'must be a JSON Schema with `type: object` and `properties`' });
    else for (const problem of schemaIssues(fields, at)) report(problem);
  }
  const form = canonicalJson({ ...(fields && { fields }), ...(title && { title }), ...(text && { text }) });
  if (form === '{}') return;
  const other = signalForms.get(signal);
  signalForms.set(signal, other ?? form);
  if (other === undefined || other === form) return;
  const message = `another wait for \`${signal}\` says something else in \`fields\`, \`title\` or \`text\`: give the two signals different names, or write it at one of them`;
  report({ path: [...path, 'wait'], message });
}

/** Compiles a duration, and checks one without an expression. @param rule - the start of the message */
export function compileTimeout(given: string | number, path: Path, level: Level, rule = TIMEOUT_RULE): CompiledField {
  checkDuration(given, path, level, rule);
  return level.fields.value(given, path, { templates: !isExpression(given) });
}
