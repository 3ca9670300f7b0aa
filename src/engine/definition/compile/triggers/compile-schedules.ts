/** Compiles the schedules of an ensemble, and reports schedules that could never start an execution. */

import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';
import { equalJson, type Json } from '../../../base/json/json.ts';
import { suggestName } from '../../../base/suggest-name.ts';
import { createTicks, cronProblem, isTimeZone, timeZones } from '../../../base/time/cron.ts';
import type { CompiledSchedule } from '../../../compiled/compiled-ensemble.ts';
import type { EnsembleDefinition, ScheduleTrigger } from '../../../ensemble/ensemble.ts';
import type { ValueCheck } from '../../../json-schema/rule.ts';
import type { Path } from '../../source/problem.ts';
import { refuseExpressions } from '../config/refuse-expressions.ts';
import type { FlowContext } from '../resolve-agent.ts';

const NAME_LENGTH = 16;

interface PlacedTrigger {
  readonly trigger: ScheduleTrigger;
  readonly at: number;
}

/** @param checkInput - the check of the ensemble's `inputs` */
export function compileSchedules(
  definition: EnsembleDefinition,
  checkInput: ValueCheck,
  context: FlowContext,
): readonly CompiledSchedule[] {
  const schedules: CompiledSchedule[] = [];
  const before: PlacedTrigger[] = [];
  for (const [at, trigger] of (definition.trigger ?? []).entries()) {
    if (trigger.type !== 'schedule') continue;
    const path: Path = ['trigger', at];
    const isValid = [checkCron(trigger, path, context), checkZone(trigger, path, context)];
    checkScheduleInput(trigger, path, checkInput, context);
    refuseDuplicate({ trigger, at }, before, context);
    // Schedules that are due at the same instants have different inputs. The number keeps their names different.
    const same = before.filter((other) => normalizedTicks(other.trigger) === normalizedTicks(trigger)).length;
    before.push({ trigger, at });
    if (isValid.every(Boolean)) schedules.push(compile(definition.name, trigger, same));
  }
  return schedules;
}

function compile(ensemble: string, trigger: ScheduleTrigger, same: number): CompiledSchedule {
  const { cron, timezone = 'UTC', overlap = 'skip', catchUp = 'once', input } = trigger;
  const hash = bytesToHex(sha256(utf8ToBytes(`${normalizedTicks(trigger)}\n${same}`))).slice(0, NAME_LENGTH);
  const ticks = createTicks(cron, timezone);
  return { name: `${ensemble}/${hash}`, cron, timezone, overlap, catchUp, input, ticks };
}

/** The cron pattern and the time zone in a normal form: equal texts are due at the same instants. */
function normalizedTicks({ cron, timezone = 'UTC' }: ScheduleTrigger): string {
  return `${cron.trim().split(/\s+/).join(' ').toUpperCase()}\n${timezone}`;
}

function checkCron({ cron }: ScheduleTrigger, path: Path, { report, dropped }: FlowContext): boolean {
  if (dropped([...path, 'cron'])) return false;
  const problem = cronProblem(cron);
  if (!problem) return true;
  const { message, offset, length } = problem;
  // Without an offset, the frame marks the whole text with its quotes.
  report({ path: [...path, 'cron'], message, ...(length < cron.length && { offset, length }) });
  return false;
}

function checkZone({ timezone }: ScheduleTrigger, path: Path, { report, dropped }: FlowContext): boolean {
  if (timezone === undefined || dropped([...path, 'timezone'])) return timezone === undefined;
  if (isTimeZone(timezone)) return true;
  const message = `is not a time zone that this runtime knows; it must be an IANA name such as \`Europe/Berlin\``;
  report({ path: [...path, 'timezone'], message, suggestion: suggestName(timezone, timeZones()) });
  return false;
}

function checkScheduleInput(
  { input }: ScheduleTrigger,
  path: Path,
  checkInput: ValueCheck,
  { report, dropped }: FlowContext,
): void {
  if (dropped([...path, 'input']) || dropped(['inputs']) || dropped(['input'])) return;
  refuseExpressions(input ?? null, [...path, 'input'], report);
  const checked = checkInput(input === undefined ? {} : input);
  if (!('problems' in checked)) return;
  const details = checked.problems.map((problem) => `${quotedPath(problem.path)} ${problem.message}`).join('; ');
  if (input === undefined) report({ path, message: `needs an \`input\` that fits \`inputs\`: ${details}` });
  else report({ path: [...path, 'input'], message: `does not fit \`inputs\`: ${details}` });
}

function quotedPath(path: string): string {
  return path === '' ? 'it' : `\`${path}\``;
}

function refuseDuplicate(
  { trigger, at }: PlacedTrigger,
  before: readonly PlacedTrigger[],
  { report, dropped }: FlowContext,
): void {
  if (dropped(['trigger', at, 'cron'])) return;
  const inputOf = ({ input = {} }: ScheduleTrigger): Json => input;
  const isDuplicate = (other: ScheduleTrigger) =>
    normalizedTicks(other) === normalizedTicks(trigger) && equalJson(inputOf(other), inputOf(trigger));
  const duplicate = before.find((other) => isDuplicate(other.trigger));
  if (!duplicate) return;
  const message = `is the same schedule as trigger[${duplicate.at}]; remove one of them, or give them different \`input\``;
  report({ path: ['trigger', at], message });
}
