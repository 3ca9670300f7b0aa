/** Types that are derived from definitions. Misuse is a type error of `tsc`. */

import { describe, expect, expectTypeOf, it } from 'vitest';
import * as z from 'zod';
import * as mini from 'zod/mini';
import { createTestOrchestrator } from '../../src/entries/testing.ts';
import {
  createOrchestrator,
  defineAgent,
  defineEnsemble,
  defineOperation,
  type Execution,
  type ExecutionHandle,
  type InputOf,
  type Json,
  type JsonObject,
  type Orchestrator,
  type OrchestratorEvent,
  type OutputsOf,
  type Script,
} from '../../src/index.ts';

const order = defineEnsemble({
  name: 'order',
  inputs: {
    id: { type: 'string', required: true },
    count: { type: 'integer', required: true },
    rate: { type: 'number' },
    express: { type: 'boolean', default: false },
    kind: { enum: ['new', 'old'] },
    meta: { type: 'object' },
    lines: { type: 'array' },
    note: { type: 'any' },
    free: {},
  },
  flow: [],
  outputs: { total: '${input.count}' },
  outputSchema: z.object({
    total: z.number(),
    at: z
      .string()
      .transform((text) => new Date(text))
      .optional(),
  }),
});
const bare = defineEnsemble({ name: 'bare', flow: [] });
const optional = defineEnsemble({ name: 'optional', inputs: { x: { type: 'string' } }, flow: [] });
const schema = defineEnsemble({
  name: 'schema',
  inputs: { type: 'object', properties: { x: { type: 'string' } } },
  flow: [],
});
const text = 'name: from-text\nflow: []';

const make = () => createOrchestrator({ ensembles: [order, bare, optional, schema, text] });
type Made = ReturnType<typeof make>;
// Only the compiler checks the calls below: they are not made.
const never = <T>(_call: (orchestrator: Made) => T): T => undefined as T;

describe('InputOf', () => {
  it('required fields are required, the others optional, each of its type', () => {
    type Input = InputOf<typeof order>;
    expectTypeOf<Input['id']>().toEqualTypeOf<string>();
    expectTypeOf<Input['count']>().toEqualTypeOf<number>();
    expectTypeOf<Input['rate']>().toEqualTypeOf<number | undefined>();
    expectTypeOf<Input['express']>().toEqualTypeOf<boolean | undefined>();
    expectTypeOf<Input['kind']>().toEqualTypeOf<'new' | 'old' | undefined>();
    expectTypeOf<Input['meta']>().toEqualTypeOf<Readonly<Record<string, unknown>> | undefined>();
    expectTypeOf<Input['lines']>().toEqualTypeOf<readonly unknown[] | undefined>();
    expectTypeOf<Input['note']>().toEqualTypeOf<unknown>();
    expectTypeOf<Input['free']>().toEqualTypeOf<unknown>();
    expectTypeOf<{ id: string; count: number }>().toExtend<Input>();
    expectTypeOf<{ id: string }>().not.toExtend<Input>();
  });

  it('without `inputs`, and with a JSON Schema, any object', () => {
    expectTypeOf<InputOf<typeof bare>>().toEqualTypeOf<Readonly<Record<string, unknown>>>();
    expectTypeOf<InputOf<typeof schema>>().toEqualTypeOf<Readonly<Record<string, unknown>>>();
  });

  it('OutputsOf: the output type of the schema; unknown without one', () => {
    const small = defineEnsemble({
      name: 'small',
      flow: [],
      outputSchema: mini.object({ n: mini.optional(mini.number()) }),
    });
    expectTypeOf<OutputsOf<typeof small>>().toEqualTypeOf<{ n?: number | undefined }>();
    expectTypeOf<OutputsOf<typeof order>>().toEqualTypeOf<{ total: number; at?: Date | undefined }>();
    expectTypeOf<OutputsOf<typeof bare>>().toBeUnknown();
  });
});

describe('execute and start', () => {
  it('return an execution with the type of its ensemble', () => {
    expectTypeOf(never((o) => o.execute('order', { id: 'x', count: 1 }))).resolves.toEqualTypeOf<
      Execution<{ total: number; at?: Date | undefined }>
    >();
    expectTypeOf(never((o) => o.start('order', { id: 'x', count: 1 }))).resolves.toEqualTypeOf<
      ExecutionHandle<{ total: number; at?: Date | undefined }>
    >();
    expectTypeOf(never((o) => o.execute('bare'))).resolves.toEqualTypeOf<Execution<unknown>>();
    expectTypeOf(never((o) => o.execute('from-text', { anything: 1 }))).resolves.toEqualTypeOf<Execution<unknown>>();
    expectTypeOf(never((o) => o.execute('stored-later' as string, { anything: 1 }))).resolves.toEqualTypeOf<
      Execution<unknown>
    >();
  });

  it('an input with required fields is required and must fit; others are optional', () => {
    never((o) => o.execute('optional'));
    never((o) => o.execute('optional', { x: 'text' }));
    never((o) => o.execute('optional', undefined, { timeout: 5 }));
    never((o) =>
      o.execute(
        'order',
        { id: 'x', count: 1, kind: 'old', lines: [1, 'two'] },
        { signal: new AbortController().signal },
      ),
    );
    // @ts-expect-error the input is required
    never((o) => o.execute('order'));
    // @ts-expect-error `count` is missing
    never((o) => o.execute('order', { id: 'x' }));
    // @ts-expect-error `count` is a number
    never((o) => o.execute('order', { id: 'x', count: '1' }));
    never((o) =>
      o.execute('order', {
        id: 'x',
        // @ts-expect-error the error is at the field
        count: '1',
      }),
    );
    never((o) =>
      o.start('order', {
        id: 'x',
        count: 1,
        // @ts-expect-error the error is at the field, and suggests `kind`
        knd: 'new',
      }),
    );
    // @ts-expect-error `kind` is one of two
    never((o) => o.execute('order', { id: 'x', count: 1, kind: 'other' }));
    // @ts-expect-error `x` is text
    never((o) => o.start('optional', { x: 1 }));
    // @ts-expect-error there is no such option
    never((o) => o.execute('bare', {}, { timeuot: 5 }));
    // @ts-expect-error a name is text
    never((o) => o.execute(5));
  });

  it('an unknown name is an error when all names are known, and allowed when a definition is text', () => {
    const closed = () => createOrchestrator({ ensembles: [order, { name: 'inline', flow: [] }] });
    const neverClosed = <T>(_call: (orchestrator: ReturnType<typeof closed>) => T): T => undefined as T;
    neverClosed((o) => o.execute('inline', { any: 1 }));
    // @ts-expect-error there is no such ensemble
    neverClosed((o) => o.execute('ordr', { id: 'x', count: 1 }));
    // @ts-expect-error there is no such ensemble
    neverClosed((o) => o.start('ordr'));
    const open = (orchestrator: Orchestrator) => orchestrator.execute('any', { any: 1 });
    neverClosed((o) => open(o));
    const empty = createOrchestrator();
    expectTypeOf(empty.execute<string>)
      .parameter(0)
      .toBeString();
  });

  it('`inputSchema` types the input by what it takes', () => {
    const parsed = defineEnsemble({
      name: 'parsed',
      inputSchema: z.object({ n: z.number().default(1), at: z.string() }),
      flow: [],
    });
    expectTypeOf<InputOf<typeof parsed>>().toEqualTypeOf<{ n?: number | undefined; at: string }>();
    const make = () => createOrchestrator({ ensembles: [parsed] });
    const neverParsed = <T>(_call: (orchestrator: ReturnType<typeof make>) => T): T => undefined as T;
    neverParsed((o) => o.execute('parsed', { at: 'noon' }));
    neverParsed((o) =>
      o.execute('parsed', {
        // @ts-expect-error `at` is text
        at: 5,
      }),
    );
    // @ts-expect-error an input schema is a Standard Schema
    defineEnsemble({ name: 'x', flow: [], inputSchema: { parse: () => 1 } });
  });

  it('the testing kit has the same types, and its clock and HTTP', () => {
    const kit = () => createTestOrchestrator({ ensembles: [order] });
    type Kit = ReturnType<typeof kit>;
    const neverKit = <T>(_call: (orchestrator: Kit) => T): T => undefined as T;
    expectTypeOf(neverKit((o) => o.execute('order', { id: 'x', count: 1 })))
      .resolves.toHaveProperty('output')
      .toEqualTypeOf<{ total: number; at?: Date | undefined }>();
    // @ts-expect-error `count` is missing
    neverKit((o) => o.execute('order', { id: 'x' }));
    expectTypeOf<Kit['clock']['advance']>().toEqualTypeOf<(ms: number) => Promise<void>>();
    // @ts-expect-error a clock that a test can move
    expect(() => createTestOrchestrator({ clock: { now: () => 0 } })).toThrow('`clock` must be a Clock');
  });

  it('the output of a stored execution is unknown', () => {
    expectTypeOf(never((o) => o.executions.get('exec_x'))).resolves.toEqualTypeOf<Execution<unknown>>();
    expectTypeOf(never((o) => o.executeAgent('a'))).resolves.toEqualTypeOf<Execution<unknown>>();
  });
});

describe('definitions', () => {
  it('defineEnsemble returns its argument, and refuses an invalid definition', () => {
    expectTypeOf(bare.name).toEqualTypeOf<'bare'>();
    // @ts-expect-error a name is required
    defineEnsemble({ flow: [] });
    // @ts-expect-error a flow is required
    defineEnsemble({ name: 'x' });
    // @ts-expect-error there is no such type
    defineEnsemble({ name: 'x', inputs: { a: { type: 'text' } }, flow: [] });
    // @ts-expect-error there is no such key of an input field
    defineEnsemble({ name: 'x', inputs: { a: { type: 'string', defualt: 'b' } }, flow: [] });
    // @ts-expect-error maxAttempts is a number
    defineEnsemble({ name: 'x', flow: [{ agent: 'a', retry: { maxAttempts: '3' } }] });
    // @ts-expect-error there is no such key
    defineEnsemble({ name: 'x', flow: [{ agent: 'a', conditon: 'true' }] });
    // @ts-expect-error there is no such key, in a block either
    defineEnsemble({ name: 'x', flow: [{ if: true, then: [{ agent: 'a', retyr: { maxAttempts: 2 } }] }] });
    // @ts-expect-error there is no such key
    defineEnsemble({ name: 'x', flow: [], otputs: {} });
    // @ts-expect-error a step has a verb
    defineEnsemble({ name: 'x', flow: [{ name: 'a' }] });
    // @ts-expect-error an output schema is a Standard Schema
    defineEnsemble({ name: 'x', flow: [], outputSchema: { parse: () => 1 } });
  });

  it('defineAgent keeps the name', () => {
    expectTypeOf(
      defineAgent({ name: 'shared', operation: 'code', config: { script: 'x' } }).name,
    ).toEqualTypeOf<'shared'>();
    // @ts-expect-error `backoff` is one of three
    defineAgent({ name: 'shared', operation: 'code', retry: { maxAttempts: 2, backoff: 'random' } });
  });

  it('defineOperation types the config by its schema', () => {
    defineOperation({
      name: 'shout',
      config: z.object({ text: z.string(), times: z.number().default(1) }),
      run: ({ config, input, signal, idempotencyKey, execution }) => {
        expectTypeOf(config).toEqualTypeOf<{ text: string; times: number }>();
        expectTypeOf(input).toEqualTypeOf<Json>();
        expectTypeOf(signal).toEqualTypeOf<AbortSignal>();
        expectTypeOf(idempotencyKey).toBeString();
        expectTypeOf(execution.attempt).toBeNumber();
        return config.text;
      },
    });
    // @ts-expect-error `run` is required
    defineOperation({ name: 'x' });
  });

  it('a script receives its context', () => {
    const plain: Script = ({ input, config, env }) => {
      expectTypeOf(input).toBeAny();
      expectTypeOf(config).toEqualTypeOf<JsonObject>();
      expectTypeOf(env).toEqualTypeOf<Readonly<Record<string, string>>>();
    };
    const typed: Script<{ n: number }> = ({ input }) => expectTypeOf(input).toEqualTypeOf<{ n: number }>();
    expectTypeOf(plain).toBeFunction();
    createOrchestrator({ scripts: { plain, typed } });
    // @ts-expect-error a script is a function
    const refused = () => createOrchestrator({ scripts: { x: 'file.js' } });
    // @ts-expect-error there is no such option
    const unknown = () => createOrchestrator({ script: {} });
    expectTypeOf([refused, unknown]).toBeArray();
  });
});

describe('events', () => {
  it('each kind has its data', () => {
    never((o) =>
      o.on('execution.completed', ({ event, data }) => {
        expectTypeOf(event).toEqualTypeOf<'execution.completed'>();
        expectTypeOf(data.output).toEqualTypeOf<Json>();
        expectTypeOf(data.duration).toBeNumber();
      }),
    );
    never((o) =>
      o.on('execution.failed', ({ data }) =>
        expectTypeOf(data.error).toEqualTypeOf<{ readonly message: string; readonly details?: JsonObject }>(),
      ),
    );
    never((o) => o.on('execution.timeout', ({ data }) => expectTypeOf(data.timeout).toBeNumber()));
    expectTypeOf(never((o) => o.on('agent.completed', () => {}))).toEqualTypeOf<() => void>();
    // @ts-expect-error there is no such event
    never((o) => o.on('execution.done', () => {}));
    // @ts-expect-error a failure has no output
    never((o) => o.on('execution.failed', ({ data }) => data.output));
  });

  it('a switch over the kind narrows the data', () => {
    const read = (event: OrchestratorEvent) => {
      if (event.event === 'agent.completed') expectTypeOf(event.data.agent).toBeString();
      // @ts-expect-error not every event has an agent
      return event.data.agent;
    };
    expectTypeOf(read).toBeFunction();
  });

  it('results are read-only', () => {
    const write = (record: Execution) => {
      // @ts-expect-error read-only
      record.status = 'failed';
      // @ts-expect-error read-only
      record.agents.push();
    };
    expectTypeOf(write).toBeFunction();
  });
});
