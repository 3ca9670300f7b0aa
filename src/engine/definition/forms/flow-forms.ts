/** The forms of all steps except agent steps: conditions, loops, blocks and waits. */

import * as z from 'zod/mini';
import { once } from '../../base/once.ts';
import { NAME_RULE } from '../../ensemble/name.ts';
import type { StepVerb } from '../../ensemble/step-verb.ts';
import type { StandIns } from './check-shape.ts';
import { flag, form, guard, hintsFor, jsonObject, type KeyHint, name, steps, text, wholeNumber } from './form.ts';

const NO_RESULT: KeyHint = { says: 'it has no result of its own; name the steps inside' };
const ofAgents = () =>
  hintsFor(['retry', 'timeout', 'input', 'setState', 'config', 'operation', 'routes'], {
    says: 'it belongs to an agent step',
  });
const whenOnly = () => hintsFor(['condition', 'when'], { says: 'put the step into an `if`' });
const tryOnly = () => hintsFor(['continueOnError'], { says: 'put the step into a `try` with a `catch`' });
const duration = once(() => z.number().check(z.gte(0)));
const common = once(() => ({
  name: z.optional(name()),
  condition: z.optional(guard()),
  when: z.optional(guard()),
}));

export const ifStepSchema = form(
  'an `if` step',
  '{ if: ..., then: [...] }',
  () => ({ if: guard(), then: steps(), else: z.optional(steps()) }),
  () => ({
    ...hintsFor(['condition', 'when'], { says: 'write the condition as the value of `if`' }),
    name: NO_RESULT,
    steps: { means: 'then' },
    ...ofAgents(),
    ...tryOnly(),
  }),
);
export const foreachStepSchema = form(
  'a `foreach` step',
  '{ foreach: ..., steps: [...] }',
  () => ({
    foreach: z.union([text(), z.array(z.unknown())], { error: 'must be an expression or a list' }),
    steps: steps(),
    name: z.optional(name()),
    as: z.optional(name()),
    concurrency: z.optional(wholeNumber(1, 1000)),
    breakWhen: z.optional(guard()),
    collect: flag(),
    condition: z.optional(guard()),
    when: z.optional(guard()),
    continueOnError: flag(),
  }),
  ofAgents,
);
export const parallelStepSchema = form(
  'a `parallel` step',
  '{ parallel: [...] }',
  () => ({
    parallel: steps(),
    waitFor: z.optional(z.enum(['all', 'any', 'first'])),
    concurrency: z.optional(wholeNumber(1, 1000)),
    ...common(),
    continueOnError: flag(),
  }),
  () => ({ ...hintsFor(['steps', 'branches'], { means: 'parallel' }), ...ofAgents() }),
);
export const switchStepSchema = form(
  'a `switch` step',
  '{ switch: ..., cases: { ... } }',
  () => ({
    switch: guard(),
    cases: z.record(z.string(), steps(), { error: 'must be a map of values to lists of steps' }),
    default: z.optional(steps()),
  }),
  () => ({
    ...whenOnly(),
    name: NO_RESULT,
    case: { means: 'cases' },
    else: { means: 'default' },
    steps: { means: 'cases' },
    ...ofAgents(),
    ...tryOnly(),
  }),
);
export const whileStepSchema = form(
  'a `while` step',
  '{ while: ..., steps: [...] }',
  () => ({
    while: guard(),
    steps: steps(),
    maxIterations: z.optional(wholeNumber(1, 1_000_000)),
  }),
  () => ({
    ...hintsFor(['condition', 'when'], { says: 'write the condition as the value of `while`' }),
    name: NO_RESULT,
    ...hintsFor(['max', 'limit', 'maxRounds', 'times'], { means: 'maxIterations' }),
    ...hintsFor(['then', 'do'], { means: 'steps' }),
    concurrency: { says: 'its rounds run one after the other' },
    ...ofAgents(),
    ...tryOnly(),
  }),
);
export const tryStepSchema = form(
  'a `try` step',
  '{ try: [...], catch: [...] }',
  () => ({ try: steps(), catch: z.optional(steps()), finally: z.optional(steps()) }),
  () => ({
    ...whenOnly(),
    name: NO_RESULT,
    steps: { means: 'try' },
    ...hintsFor(['except', 'else', 'continueOnError'], { means: 'catch' }),
    ...ofAgents(),
  }),
);
export const DURATION_RULE = 'must be a duration such as `90s` or `1h30m`, milliseconds, or `{ until: an instant }`';
export const INSTANT_RULE = 'must be an instant such as `2030-01-31T08:00:00Z`, or Unix milliseconds';
const instant = once(() => z.union([text(), z.number()], { error: INSTANT_RULE }));
const until = form(
  'an instant to sleep to',
  '{ until: 2030-01-31T08:00:00Z }',
  () => ({ until: instant() }),
  () =>
    hintsFor(['ms', 'seconds', 'minutes', 'hours', 'days', 'for', 'duration'], {
      says: 'write a duration as the value of `sleep`, such as `sleep: 90s`',
      means: 'until',
    }),
);
const ofWaits = () => ({ ...ofAgents(), ...tryOnly() });
const sleepForm = <S extends z.ZodMiniType>(sleep: () => S) =>
  form('a `sleep` step', '{ sleep: 90s }', () => ({ sleep: sleep(), ...common() }), ofWaits);
export const sleepStepSchema = sleepForm(() => z.union([text(), duration(), until()], { error: DURATION_RULE }));
/** The form of a `sleep` whose value is a map, so that problems are reported for each key. */
export const sleepUntilSchema = sleepForm(until);
/** The short spelling of `sleep: { until: ... }`. */
export const untilStepSchema = form(
  'an `until` step',
  '{ until: 2030-01-31T08:00:00Z }',
  () => ({ until: instant(), ...common() }),
  ofWaits,
);
export const SIGNAL_RULE = `must be the name of a signal (${NAME_RULE}), without expressions`;
export const TIMEOUT_RULE = 'must be a duration such as `24h`, or milliseconds';
export const CHILD_TIMEOUT_RULE = 'must be a duration such as `10m`, or milliseconds';
export const waitStepSchema = form(
  'a `wait` step',
  '{ wait: approved }',
  () => ({
    wait: z.string({ error: SIGNAL_RULE }),
    timeout: z.optional(z.union([text(), duration()], { error: TIMEOUT_RULE })),
    onTimeout: z.optional(z.enum(['fail', 'continue'])),
    fields: z.optional(jsonObject()),
    title: z.optional(text()),
    text: z.optional(text()),
    ...common(),
  }),
  () => ({
    ...ofWaits(),
    ...hintsFor(['signal', 'for', 'event'], { means: 'wait' }),
    ...hintsFor(['deadline', 'within', 'max'], { means: 'timeout' }),
    ...hintsFor(['default', 'else', 'otherwise'], { means: 'onTimeout' }),
    ...hintsFor(['schema', 'payload', 'form', 'input', 'inputs'], { means: 'fields' }),
  }),
);

export const ensembleStepSchema = form(
  'an `ensemble` step',
  '{ ensemble: name }',
  () => ({
    ensemble: name(),
    input: z.optional(z.unknown()),
    detached: z.optional(z.boolean()),
    timeout: z.optional(z.union([text(), duration()], { error: CHILD_TIMEOUT_RULE })),
    ...common(),
    continueOnError: flag(),
  }),
  () => ({
    ...hintsFor(['async', 'background', 'fireAndForget', 'wait'], { means: 'detached' }),
    ...hintsFor(['inputs', 'with', 'args', 'params'], { means: 'input' }),
    retry: { says: 'put `retry` on the agents of that ensemble, or put the step into a `while`' },
    ...hintsFor(['setState', 'config', 'operation', 'routes'], { says: 'it belongs to an agent step' }),
  }),
);

/** What the stages that read a definition know of one form of a step. `STEP_LISTS` of the model has the lists in it. */
export interface StepLanguage {
  readonly schema: () => z.ZodMiniType;
  /** What replaces a wrong part, so that its inner steps are still checked. */
  readonly standIns?: StandIns;
}

/** The forms of all verbs and their other spellings, without agent steps. */
export const FLOW_FORMS = {
  if: { schema: ifStepSchema, standIns: { if: false, then: [] } },
  foreach: { schema: foreachStepSchema, standIns: { foreach: [], steps: [] } },
  parallel: { schema: parallelStepSchema, standIns: { parallel: [] } },
  switch: { schema: switchStepSchema, standIns: { switch: false, cases: {} } },
  while: { schema: whileStepSchema, standIns: { while: false, steps: [] } },
  try: { schema: tryStepSchema, standIns: { try: [] } },
  sleep: { schema: sleepStepSchema, standIns: { sleep: 0 } },
  until: { schema: untilStepSchema },
  wait: { schema: waitStepSchema, standIns: { wait: 'signal' } },
  ensemble: { schema: ensembleStepSchema },
} satisfies Readonly<Record<Exclude<StepVerb, 'agent'> | 'until', StepLanguage>>;
