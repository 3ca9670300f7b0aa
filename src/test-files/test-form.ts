/** The form of a test file, which has the tests of one ensemble. */

import * as z from 'zod/mini';
import type { Json } from '../engine/base/json/json.ts';
import { once } from '../engine/base/once.ts';
import { DURATION_MESSAGE } from '../engine/base/time/duration-schema.ts';
import { COMPONENT_KINDS } from '../engine/component/component.ts';
import {
  duration,
  form,
  jsonObject,
  nonEmpty,
  nonEmptyList,
  text,
  wholeNumber,
} from '../engine/definition/forms/form.ts';
import type { EnsuredComponent } from '../orchestrator/components/components.ts';
import type { StubReply } from '../testing-kit/stub-http.ts';

/** What an agent answers in place of its operation. */
export interface TestAnswer {
  readonly output?: Json;
  /** The message, or the parts of the error. */
  readonly error?: string | { readonly code?: string; readonly message?: string; readonly retryable?: boolean };
  /** How long the answer takes. */
  readonly delay?: string | number;
}

/** One test of a test file. */
export interface FlowTest {
  readonly name: string;
  readonly input?: Json;
  readonly env?: Readonly<Record<string, string>>;
  /** When the execution starts: an instant in ISO 8601, or Unix ms. */
  readonly now?: string | number;
  readonly agents?: Readonly<Record<string, TestAnswer | readonly TestAnswer[]>>;
  readonly http?: readonly { readonly request: string; readonly reply: StubReply | readonly StubReply[] }[];
  readonly signals?: readonly { readonly name: string; readonly after?: string | number; readonly payload?: Json }[];
  /** Prompts, templates, configs and queries, in place of those of the app: as `components.ensure` takes them. */
  readonly components?: readonly EnsuredComponent[];
  readonly expect?: Expectation;
}

/** What must have happened. What is left out may be anything. */
export interface Expectation {
  /** Default `completed`, unless an `error` is expected. */
  readonly status?: string;
  readonly output?: Json;
  /** The code of the error, or its parts; the message is a part of the real one. */
  readonly error?: Json;
  /** The agents that ran, in their order, or what is expected of each. */
  readonly steps?: readonly string[] | Readonly<Record<string, Json>>;
  readonly notRun?: readonly string[];
  /** By agent, or by `METHOD url`: how many calls were made, or what each of them had. */
  readonly calls?: Readonly<Record<string, number | readonly Json[]>>;
  readonly duration?: Json;
  /** Events in their order: their names, or parts of them. Others may stand between. */
  readonly events?: readonly Json[];
}

const instant = once(() =>
  z.union([z.int(), text().check(z.refine((value) => !Number.isNaN(Date.parse(value))))], {
    error: 'must be an instant such as `2026-03-01T09:00:00Z`, or Unix ms',
  }),
);

const error = form('an error', '{ code: AGENT_FAILED, message: ... }', () => ({
  code: z.optional(nonEmpty()),
  message: z.optional(text()),
  retryable: z.optional(z.boolean()),
}));

const answer = form('an answer', '{ output: ... }', () => ({
  output: z.optional(z.unknown()),
  error: z.optional(z.union([text(), error()], { error: 'must be a message, or `{ code, message }`' })),
  delay: z.optional(duration()),
})) as () => z.ZodMiniType;

const reply = form('a reply', '{ json: ... }', () => ({
  status: z.optional(wholeNumber(100, 599)),
  json: z.optional(z.unknown()),
  text: z.optional(text()),
  chunks: z.optional(z.array(text())),
  headers: z.optional(z.record(z.string(), text())),
  error: z.optional(z.enum(['connection', 'timeout'])),
})) as () => z.ZodMiniType;

const oneOrMore = (entry: () => z.ZodMiniType, what: string) =>
  z.union([nonEmptyList(entry()), entry()], { error: `must be ${what}, or a list of them: one for each call` });

const expectation = form('`expect`', '{ output: { ... } }', () => ({
  status: z.optional(z.enum(['completed', 'failed', 'timed_out', 'cancelled'])),
  output: z.optional(z.unknown()),
  error: z.optional(z.union([nonEmpty(), jsonObject()], { error: 'must be a code, or `{ code, message, agent }`' })),
  steps: z.optional(
    z.union([z.array(nonEmpty()), z.record(z.string(), z.unknown())], {
      error: 'must be a list of agents, or a map from agents to what is expected of them',
    }),
  ),
  notRun: z.optional(nonEmptyList(nonEmpty())),
  calls: z.optional(
    z.record(
      z.string(),
      z.union([wholeNumber(0, 1_000_000), z.array(z.unknown())], {
        error: 'must be the number of calls, or a list of what each of them has',
      }),
    ),
  ),
  duration: z.optional(
    z.union([duration(), z.literal(0), text().check(z.includes('${'))], {
      error: 'must be a duration such as `2d`, milliseconds, or an expression',
    }),
  ),
  events: z.optional(nonEmptyList(z.union([nonEmpty(), jsonObject()]))),
}));

export const flowTestForm = form('a test', '{ name: ..., input: ..., expect: ... }', () => ({
  name: nonEmpty(),
  input: z.optional(z.unknown()),
  env: z.optional(z.record(z.string(), text())),
  now: z.optional(instant()),
  agents: z.optional(z.record(z.string(), oneOrMore(answer, 'an answer such as `{ output: ... }`'))),
  http: z.optional(
    z.array(
      form('a stubbed request', '{ request: "GET https://...", reply: { json: ... } }', () => ({
        request: nonEmpty(),
        reply: oneOrMore(reply, 'a reply such as `{ json: ... }`'),
      }))(),
    ),
  ),
  signals: z.optional(
    z.array(
      form('a signal', '{ name: approved, after: 2d, payload: ... }', () => ({
        name: nonEmpty(),
        after: z.optional(z.union([duration(), z.literal(0)], { error: DURATION_MESSAGE })),
        payload: z.optional(z.unknown()),
      }))(),
    ),
  ),
  components: z.optional(
    z.array(
      form('a component', '{ name: greet, kind: prompt, content: ..., to: production }', () => ({
        name: nonEmpty(),
        kind: z.enum(COMPONENT_KINDS),
        content: z.unknown(),
        metadata: z.optional(jsonObject()),
        version: z.optional(nonEmpty()),
        to: z.optional(z.union([nonEmpty(), nonEmptyList(nonEmpty())], { error: 'must be an environment, or a list' })),
      }))(),
    ),
  ),
  expect: z.optional(expectation()),
}));

export const testFileForm = form('a test file', '{ ensemble: ..., tests: [...] }', () => ({
  ensemble: nonEmpty(),
  tests: nonEmptyList(z.unknown(), 'must be a list of tests (`- { name: ..., expect: ... }`)'),
}));

export function instantOf(now: string | number): number {
  return typeof now === 'number' ? now : Date.parse(now);
}
