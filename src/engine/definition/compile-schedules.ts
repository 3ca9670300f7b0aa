/** Compiles the schedules of an ensemble, and reports what would keep one from ever starting a run. */

import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';
import { createTicks, cronProblem, isTimeZone, timeZones } from '../cron.ts';
import { equalJson, type Json } from '../json.ts';
import type { EnsembleDefinition, ScheduleTrigger } from '../model/ensemble.ts';
import { suggestName } from '../suggest-name.ts';
import type { CompiledSchedule, InputCheck } from './compiled-ensemble.ts';
import type { Path } from './problem.ts';
import { refuseExpressions } from './refuse-expressions.ts';
import type { FlowContext } from './resolve-agent.ts';

const NAME_LENGTH = 16;

interface Placed {
  readonly trigger: ScheduleTrigger;
  readonly at: number;
}

/** @param checkInput - that of the ensemble's `inputs` */
export function compileSchedules(
  definition: EnsembleDefinition,
  checkInput: InputCheck,
  context: FlowContext,
): readonly CompiledSchedule[] {
  const schedules: CompiledSchedule[] = [];
  const before: Placed[] = [];
  for (const [at, trigger] of (definition.trigger ?? []).entries()) {
    if (trigger.type !== 'schedule') continue;
    const path: Path = ['trigger', at];
    const isSound = [checkCron(trigger, path, context), checkZone(trigger, path, context)];
    checkItsInput(trigger, path, checkInput, context);
    refuseTwin({ trigger, at }, before, context);
    // Those that are due at the same instants have a name each: they start runs of different input.
    const same = before.filter((other) => dueAs(other.trigger) === dueAs(trigger)).length;
    before.push({ trigger, at });
    if (isSound.every(Boolean)) schedules.push(compile(definition.name, trigger, same));
  }
  return schedules;
}

function compile(ensemble: string, trigger: ScheduleTrigger, same: number): CompiledSchedule {
  const { cron, timezone = 'UTC', overlap = 'skip', catchUp = 'once', input } = trigger;
  const hash = bytesToHex(sha256(utf8ToBytes(`${dueAs(trigger)}\n${same}`))).slice(0, NAME_LENGTH);
  const ticks = createTicks(cron, timezone);
  return { name: `${ensemble}/${hash}`, cron, timezone, overlap, catchUp, input, ticks };
}

/** What it is due by, whichever way it is written. */
function dueAs({ cron, timezone = 'UTC' }: ScheduleTrigger): string {
  return `${cron.trim().split(/\s+/).join(' ').toUpperCase()}\n${timezone}`;
}

function checkCron({ cron }: ScheduleTrigger, path: Path, { report, dropped }: FlowContext): boolean {
  if (dropped([...path, 'cron'])) return false;
  const problem = cronProblem(cron);
  if (!problem) return true;
  const { message, offset, length } = problem;
  // Of a text as a whole, the place is that of its first quote.
  report({ path: [...path, 'cron'], message, ...(length < cron.length && { offset, length }) });
  return false;
}

function checkZone({ timezone }: ScheduleTrigger, path: Path, { report, dropped }: FlowContext): boolean {
  if (timezone === undefined || dropped([...path, 'timezone'])) return timezone === undefined;
  if (isTimeZone(timezone)) return true;
  const message = `is no time zone that this runtime knows; it must be an IANA name such as \`Europe/Berlin\``;
  report({ path: [...path, 'timezone'], message, suggestion: suggestName(timezone, timeZones()) });
  return false;
}

function checkItsInput(
  { input }: ScheduleTrigger,
  path: Path,
  checkInput: InputCheck,
  { report, dropped }: FlowContext,
): void {
  if (dropped([...path, 'input']) || dropped(['inputs']) || dropped(['input'])) return;
  refuseExpressions(input ?? null, [...path, 'input'], report);
  const checked = checkInput(input === undefined ? {} : input);
  if (!('problems' in checked)) return;
  const what = checked.problems.map((problem) => `${quotedPath(problem.path)} ${problem.message}`).join('; ');
  if (input === undefined) report({ path, message: `needs an \`input\` that fits \`inputs\`: ${what}` });
  else report({ path: [...path, 'input'], message: `does not fit \`inputs\`: ${what}` });
}

function quotedPath(path: string): string {
  return path === '' ? 'it' : `\`${path}\``;
}

function refuseTwin({ trigger, at }: Placed, before: readonly Placed[], { report, dropped }: FlowContext): void {
  if (dropped(['trigger', at, 'cron'])) return;
  const inputOf = ({ input = {} }: ScheduleTrigger): Json => input;
  const isTwin = (other: ScheduleTrigger) =>
    dueAs(other) === dueAs(trigger) && equalJson(inputOf(other), inputOf(trigger));
  const twin = before.find((other) => isTwin(other.trigger));
  if (!twin) return;
  const message = `says the same as trigger[${twin.at}]; remove one of them, or give them different \`input\``;
  report({ path: ['trigger', at], message });
}
