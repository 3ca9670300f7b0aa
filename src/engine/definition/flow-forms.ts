/** The forms of the steps that decide what runs: branches, loops, blocks and waits. */

import * as z from 'zod';
import { NAME_RULE } from '../model/name.ts';
import { form, guard, hintsFor, type KeyHint, name, steps, text } from './form.ts';

const NO_RESULT: KeyHint = { says: 'it has no result of its own; name the steps inside' };
const ofAgents = hintsFor(['retry', 'timeout', 'input', 'setState', 'config', 'operation', 'routes'], {
  says: 'it belongs to an agent step',
});
const whenOnly = hintsFor(['condition', 'when'], { says: 'put the step into an `if`' });
const tryOnly = hintsFor(['continueOnError'], { says: 'put the step into a `try` with a `catch`' });
const common = {
  name: name.optional(),
  condition: guard.optional(),
  when: guard.optional(),
};

export const ifStepSchema = form(
  'an `if` step',
  '{ if: ..., then: [...] }',
  { if: guard, then: steps, else: steps.optional() },
  {
    ...hintsFor(['condition', 'when'], { says: 'the guard stands behind `if`' }),
    name: NO_RESULT,
    steps: { means: 'then' },
    ...ofAgents,
    ...tryOnly,
  },
);
export const foreachStepSchema = form(
  'a `foreach` step',
  '{ foreach: ..., steps: [...] }',
  {
    foreach: z.union([text, z.array(z.unknown())], { error: 'must be an expression or a list' }),
    steps,
    name: name.optional(),
    as: name.optional(),
    concurrency: z.int().min(1).max(1000).optional(),
    breakWhen: guard.optional(),
    collect: z.boolean().optional(),
    condition: guard.optional(),
    when: guard.optional(),
    continueOnError: z.boolean().optional(),
  },
  ofAgents,
);
export const parallelStepSchema = form(
  'a `parallel` step',
  '{ parallel: [...] }',
  {
    parallel: steps,
    waitFor: z.enum(['all', 'any', 'first']).optional().describe('Default `all`.'),
    concurrency: z.int().min(1).max(1000).optional(),
    ...common,
    continueOnError: z.boolean().optional(),
  },
  { ...hintsFor(['steps', 'branches'], { means: 'parallel' }), ...ofAgents },
);
export const switchStepSchema = form(
  'a `switch` step',
  '{ switch: ..., cases: { ... } }',
  {
    switch: guard,
    cases: z.record(z.string(), steps, { error: 'must be a map of values to lists of steps' }),
    default: steps.optional(),
  },
  {
    ...whenOnly,
    name: NO_RESULT,
    case: { means: 'cases' },
    else: { means: 'default' },
    steps: { means: 'cases' },
    ...ofAgents,
    ...tryOnly,
  },
);
export const whileStepSchema = form(
  'a `while` step',
  '{ while: ..., steps: [...] }',
  {
    while: guard,
    steps,
    maxIterations: z.int().min(1).max(1_000_000).optional().describe('Rounds after which it fails; default 1,000.'),
  },
  {
    ...hintsFor(['condition', 'when'], { says: 'the guard stands behind `while`' }),
    name: NO_RESULT,
    ...hintsFor(['max', 'limit', 'maxRounds', 'times'], { means: 'maxIterations' }),
    ...hintsFor(['then', 'do'], { means: 'steps' }),
    concurrency: { says: 'its rounds run one after the other' },
    ...ofAgents,
    ...tryOnly,
  },
);
export const tryStepSchema = form(
  'a `try` step',
  '{ try: [...], catch: [...] }',
  { try: steps, catch: steps.optional(), finally: steps.optional() },
  {
    ...whenOnly,
    name: NO_RESULT,
    steps: { means: 'try' },
    ...hintsFor(['except', 'else', 'continueOnError'], { means: 'catch' }),
    ...ofAgents,
  },
);
export const DURATION_RULE = 'must be a duration such as `90s` or `1h30m`, milliseconds, or `{ until: an instant }`';
export const INSTANT_RULE = 'must be an instant such as `2030-01-31T08:00:00Z`, or Unix milliseconds';
const instant = z.union([text, z.number()], { error: INSTANT_RULE });
const until = form(
  'an instant to sleep to',
  '{ until: 2030-01-31T08:00:00Z }',
  { until: instant },
  hintsFor(['ms', 'seconds', 'minutes', 'hours', 'days', 'for', 'duration'], {
    says: 'a duration stands behind `sleep` itself, such as `sleep: 90s`',
    means: 'until',
  }),
);
const sleepForm = <S extends z.ZodType>(sleep: S) =>
  form('a `sleep` step', '{ sleep: 90s }', { sleep, ...common }, { ...ofAgents, ...tryOnly });
export const sleepStepSchema = sleepForm(z.union([text, z.number().min(0), until], { error: DURATION_RULE }));
/** That of a `sleep` whose value is a map: what is wrong in it is told key by key. */
export const sleepUntilSchema = sleepForm(until);
/** The short spelling of `sleep: { until: ... }`. */
export const untilStepSchema = form(
  'an `until` step',
  '{ until: 2030-01-31T08:00:00Z }',
  { until: instant, ...common },
  { ...ofAgents, ...tryOnly },
);
export const SIGNAL_RULE = `must be the name of a signal (${NAME_RULE}), without expressions`;
export const TIMEOUT_RULE = 'must be a duration such as `24h`, or milliseconds';
export const CHILD_TIMEOUT_RULE = 'must be a duration such as `10m`, or milliseconds';
export const waitStepSchema = form(
  'a `wait` step',
  '{ wait: approved }',
  {
    wait: z.string({ error: SIGNAL_RULE }),
    timeout: z
      .union([text, z.number().min(0)], { error: TIMEOUT_RULE })
      .optional()
      .describe('Default: no end.'),
    onTimeout: z.enum(['fail', 'continue']).optional().describe('Default `fail`.'),
    ...common,
  },
  {
    ...ofAgents,
    ...tryOnly,
    ...hintsFor(['signal', 'for', 'event'], { means: 'wait' }),
    ...hintsFor(['deadline', 'within', 'max'], { means: 'timeout' }),
    ...hintsFor(['default', 'else', 'otherwise'], { means: 'onTimeout' }),
  },
);

export const ensembleStepSchema = form(
  'an `ensemble` step',
  '{ ensemble: name }',
  {
    ensemble: name,
    input: z.unknown().optional(),
    detached: z.boolean().optional().describe('Started and not waited for.'),
    timeout: z
      .union([text, z.number().min(0)], { error: CHILD_TIMEOUT_RULE })
      .optional()
      .describe('How long it may take; default as its own definition says.'),
    ...common,
    continueOnError: z.boolean().optional(),
  },
  {
    ...hintsFor(['async', 'background', 'fireAndForget', 'wait'], { means: 'detached' }),
    ...hintsFor(['inputs', 'with', 'args', 'params'], { means: 'input' }),
    retry: { says: 'put `retry` on the agents of that ensemble, or the step into a `while`' },
    ...hintsFor(['setState', 'config', 'operation', 'routes'], { says: 'it belongs to an agent step' }),
  },
);

/** A step's verb key to its form, without that of agents. */
export const FLOW_FORMS = {
  if: ifStepSchema,
  foreach: foreachStepSchema,
  parallel: parallelStepSchema,
  switch: switchStepSchema,
  while: whileStepSchema,
  try: tryStepSchema,
  sleep: sleepStepSchema,
  until: untilStepSchema,
  wait: waitStepSchema,
  ensemble: ensembleStepSchema,
} as const;
