/** Compiles the steps that wait: for an instant, or for a signal. */

import { LONGEST_SLEEP_MS, nearestDuration, parseDuration } from '../duration.ts';
import { parseInstant } from '../expression/functions/instant.ts';
import type { SleepStep, WaitStep } from '../model/ensemble.ts';
import { NAME_PATTERN } from '../model/name.ts';
import { resultOf } from './compile-blocks.ts';
import type { CompiledSleepStep, CompiledWaitStep } from './compiled-ensemble.ts';
import { DURATION_RULE, INSTANT_RULE, SIGNAL_RULE, TIMEOUT_RULE } from './flow-forms.ts';
import type { Level, StepPlace } from './flow-level.ts';
import type { Path } from './problem.ts';
import { describe } from './wording.ts';

export function compileSleep(step: SleepStep, place: StepPlace, level: Level): CompiledSleepStep {
  const { sleep } = step;
  const isInstant = typeof sleep === 'object';
  const given = isInstant ? sleep.until : sleep;
  const path = [...place.path, 'sleep', ...(isInstant ? ['until'] : [])];
  checkWritten(given, isInstant, path, level);
  const { evaluate, readsState } = level.fields.value(given, path);
  return { kind: 'sleep', key: place.key, ...resultOf(step, place, level), value: evaluate, isInstant, readsState };
}

// What holds no expression is known to be right or wrong at load.
function checkWritten(given: string | number, isInstant: boolean, path: Path, { context }: Level): void {
  if (typeof given === 'string' && given.includes('${')) return;
  const ms = typeof given === 'string' ? parseDuration(given) : given;
  const instant = isInstantText(given);
  if (isInstant ? instant : ms !== undefined && ms <= LONGEST_SLEEP_MS) return;
  if (!isInstant && ms !== undefined) {
    context.report({ path, message: `must be at most ten years, not ${describe(given)}` });
  } else if (isInstant) {
    const suggestion = typeof given === 'string' && ms !== undefined ? `sleep: ${given}` : undefined;
    context.report({ path, message: `${INSTANT_RULE}, not ${describe(given)}`, suggestion });
  } else {
    const suggestion = instant ? `until: ${given}` : nearestDuration(String(given));
    context.report({ path, message: `${DURATION_RULE}, not ${describe(given)}`, suggestion });
  }
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
    report({ path: at('wait'), message: `${SIGNAL_RULE}, not ${describe(signal)}`, suggestion });
  }
  if (timeout !== undefined) checkTimeout(timeout, at('timeout'), level);
  else if (onTimeout !== undefined && !dropped(at('timeout'))) {
    report({
      path: at('onTimeout'),
      key: true,
      message: 'needs a `timeout` beside it: without one, the wait has no end',
    });
  }
  const value = timeout === undefined ? undefined : level.fields.value(timeout, at('timeout'));
  return {
    kind: 'wait',
    key: place.key,
    ...resultOf(step, place, level),
    signal,
    timeout: value?.evaluate,
    readsState: value?.readsState ?? false,
    continues: onTimeout === 'continue',
  };
}

/** Checks a duration that holds no expression. @param rule - what it must be */
export function checkTimeout(given: string | number, path: Path, { context }: Level, rule = TIMEOUT_RULE): void {
  if (typeof given === 'string' && given.includes('${')) return;
  const ms = typeof given === 'string' ? parseDuration(given) : given;
  if (ms !== undefined && ms <= LONGEST_SLEEP_MS) return;
  if (ms !== undefined) context.report({ path, message: `must be at most ten years, not ${describe(given)}` });
  else {
    const suggestion = nearestDuration(String(given));
    context.report({ path, message: `${rule}, not ${describe(given)}`, suggestion });
  }
}
