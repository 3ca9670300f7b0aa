/** The rules for failures of agents, row by row: see the table in `run-list.ts`. */

import { describe, expect, it } from 'vitest';
import { outputsOf } from '../../src/engine/execution/execution-record.ts';
import { boom, echo, ok, scene, when } from './scene.ts';

type Step = Readonly<Record<string, unknown>>;

interface Row {
  readonly rule: string;
  readonly flow: readonly Step[];
  readonly input?: unknown;
  /** The agents that ran, in order. */
  readonly ran: string;
  /** The agent whose failure ends the run; undefined when the run completes. */
  readonly fails?: string;
}

const route = (agent: string, routes: readonly Step[], fields: Step = {}): Step => ({ agent, routes, ...fields });
const branch = (condition: string, then: readonly Step[], otherwise?: readonly Step[]): Step => ({
  if: `\${${condition}}`,
  then,
  ...(otherwise && { else: otherwise }),
});
const each = (items: unknown, steps: readonly Step[], fields: Step = {}): Step => ({
  foreach: items,
  steps,
  ...fields,
});

const rows: readonly Row[] = [
  { rule: 'checked by no guard: the run ends there', flow: [boom('a'), ok('b')], ran: 'a', fails: 'a' },
  { rule: 'the last step fails', flow: [ok('a'), boom('b')], ran: 'a b', fails: 'b' },
  { rule: 'continueOnError: handled', flow: [boom('a', { continueOnError: true }), ok('b')], ran: 'a b' },
  { rule: 'continueOnError on the last step', flow: [boom('a', { continueOnError: true })], ran: 'a' },
  {
    rule: 'a condition on .failed that led to a step: handled',
    flow: [boom('a'), ok('b', when('a.failed'))],
    ran: 'a b',
  },
  { rule: 'a condition on .success, negated', flow: [boom('a'), ok('b', when('!a.success'))], ran: 'a b' },
  { rule: 'a bare condition without ${}', flow: [boom('a'), ok('b', { condition: 'a.failed' })], ran: 'a b' },
  {
    rule: 'a guard two steps later: the flow continues until there',
    flow: [boom('a'), ok('x'), ok('b', when('a.failed'))],
    ran: 'a x b',
  },
  {
    rule: 'a sleep: its condition, or an `if` around it, handles the failure',
    flow: [boom('a'), { sleep: 0, ...when('a.failed') }, boom('b'), { if: 'b.failed', then: [{ sleep: 5 }] }, ok('c')],
    ran: 'a b c',
  },
  {
    rule: 'a wait, even without a signal: its condition, or an `if` around it, handles the failure',
    flow: [boom('a'), { if: 'a.failed', then: [{ wait: 'go', timeout: 5, onTimeout: 'continue' }] }, ok('b')],
    ran: 'a b',
  },
  {
    rule: 'a guard that did not hold handles nothing',
    flow: [boom('a'), ok('b', when('a.success'))],
    ran: 'a',
    fails: 'a',
  },
  {
    rule: 'no later guard is left: the run ends there',
    flow: [boom('a'), ok('b', when('a.success')), ok('c')],
    ran: 'a',
    fails: 'a',
  },
  {
    rule: 'the second guard handles it',
    flow: [boom('a'), ok('b', when('a.success')), ok('c', when('a.failed'))],
    ran: 'a c',
  },
  {
    rule: 'a guard that does not hold for another reason',
    flow: [boom('a'), ok('b', when('a.failed && input.go'))],
    input: { go: false },
    ran: 'a',
    fails: 'a',
  },
  {
    rule: 'a guard before the agent is not a later guard',
    flow: [ok('b', when('a.failed')), boom('a')],
    ran: 'a',
    fails: 'a',
  },
  {
    rule: 'a guard on another agent',
    flow: [ok('x'), boom('a'), ok('b', when('x.success')), ok('c')],
    ran: 'x a',
    fails: 'a',
  },
  {
    rule: 'a guard that reads .output handles nothing',
    flow: [boom('a'), ok('b', when('a.output == null'))],
    ran: 'a',
    fails: 'a',
  },
  {
    rule: 'a guard that reads .error handles nothing',
    flow: [boom('a'), ok('b', when('a.error.message'))],
    ran: 'a',
    fails: 'a',
  },
  {
    rule: 'an input that reads .failed handles nothing',
    flow: [boom('a'), echo('b', { bad: '${a.failed}' })],
    ran: 'a',
    fails: 'a',
  },
  {
    rule: 'the handling step fails: its failure counts',
    flow: [boom('a'), boom('b', when('a.failed'))],
    ran: 'a b',
    fails: 'b',
  },
  {
    rule: 'a chain of fallbacks',
    flow: [boom('a'), boom('b', when('a.failed')), ok('c', when('b.failed'))],
    ran: 'a b c',
  },

  { rule: 'if: then', flow: [boom('a'), branch('a.failed', [ok('b')])], ran: 'a b' },
  { rule: 'if: else', flow: [boom('a'), branch('a.success', [ok('b')], [ok('c')])], ran: 'a c' },
  {
    rule: 'if without the chosen branch',
    flow: [boom('a'), branch('a.success', [ok('b')])],
    ran: 'a',
    fails: 'a',
  },
  { rule: 'if that leads to an empty branch', flow: [boom('a'), branch('a.failed', [])], ran: 'a', fails: 'a' },
  {
    rule: 'if that leads to a step that is skipped',
    flow: [boom('a'), branch('a.failed', [ok('b', when('false'))])],
    ran: 'a',
    fails: 'a',
  },
  {
    rule: 'a guard inside a nested if, reached',
    flow: [boom('a'), branch('input.go', [branch('true', [ok('x'), ok('b', when('a.failed'))])]), ok('z')],
    input: { go: true },
    ran: 'a x b z',
  },
  {
    rule: 'a guard inside a nested if, not reached',
    flow: [boom('a'), branch('input.go', [branch('true', [ok('b', when('a.failed'))])]), ok('z')],
    input: { go: false },
    ran: 'a',
    fails: 'a',
  },
  {
    rule: 'a guard in the else of a nested if',
    flow: [boom('a'), branch('true', [branch('false', [], [ok('b', when('a.failed'))])])],
    ran: 'a b',
  },
  {
    rule: 'a failure inside a branch, guarded after the if',
    flow: [branch('true', [boom('a')]), ok('b', when('a.failed'))],
    ran: 'a b',
  },
  {
    rule: 'a failure inside a branch, without a guard',
    flow: [branch('true', [boom('a'), ok('x')]), ok('b')],
    ran: 'a',
    fails: 'a',
  },
  {
    rule: 'a failure two branches deep, guarded in the branch around it',
    flow: [branch('true', [branch('true', [boom('a')]), ok('b', when('a.failed'))]), ok('c')],
    ran: 'a b c',
  },
  {
    rule: 'a guard in the other branch of the same if is not a later guard',
    flow: [branch('true', [boom('a')], [ok('b', when('a.failed'))])],
    ran: 'a',
    fails: 'a',
  },

  {
    rule: 'route: the entry that holds',
    flow: [boom('a'), route('r', [{ condition: '${a.failed}', member: 'b' }])],
    ran: 'a b',
  },
  {
    rule: 'route: the default, after a guard that did not hold',
    flow: [
      boom('a'),
      route('r', [
        { condition: '${a.success}', member: 'b' },
        { default: true, member: 'c' },
      ]),
    ],
    ran: 'a c',
  },
  {
    rule: 'route: no entry holds',
    flow: [boom('a'), route('r', [{ condition: '${a.success}', member: 'b' }])],
    ran: 'a',
    fails: 'a',
  },
  {
    rule: 'route: an entry after the chosen entry handles nothing',
    flow: [
      boom('a'),
      route('r', [
        { condition: '${true}', member: 'b' },
        { condition: '${a.failed}', member: 'c' },
      ]),
    ],
    ran: 'a b',
    fails: 'a',
  },
  {
    rule: "the route's own condition",
    flow: [boom('a'), route('r', [{ default: true, member: 'b' }], when('a.failed'))],
    ran: 'a b',
  },
  {
    rule: 'the member of a route fails, and a guard checks the route',
    flow: [route('r', [{ default: true, member: 'bad' }]), ok('b', when('r.failed'))],
    ran: 'bad b',
  },
  {
    rule: 'the member of a route fails, and a guard checks the member',
    flow: [route('r', [{ default: true, member: 'bad' }]), ok('b', when('bad.failed'))],
    ran: 'bad b',
  },
  {
    rule: 'the member of a route fails, unguarded',
    flow: [route('r', [{ default: true, member: 'bad' }]), ok('b')],
    ran: 'bad',
    fails: 'bad',
  },

  {
    rule: 'two failures, each with a guard',
    flow: [boom('a'), boom('b'), ok('c', when('a.failed')), ok('d', when('b.failed'))],
    ran: 'a b c d',
  },
  {
    rule: 'two failures, one guard for both',
    flow: [boom('a'), boom('b'), ok('c', when('a.failed && b.failed'))],
    ran: 'a b c',
  },
  {
    rule: 'two failures, the second unguarded: the run ends, and the first that nothing handled is its error',
    flow: [boom('a'), boom('b'), ok('c', when('a.failed'))],
    ran: 'a b',
    fails: 'a',
  },
  {
    rule: 'the first failure is handled, the second is not',
    flow: [boom('a'), ok('c', when('a.failed')), boom('b'), ok('d')],
    ran: 'a c b',
    fails: 'b',
  },

  {
    rule: 'foreach: an item fails, the block fails, the run ends',
    flow: [each([1, 2], [boom('x')]), ok('b')],
    ran: 'x',
    fails: 'x',
  },
  {
    rule: "foreach: a guard on the block's name",
    flow: [each([1, 2], [boom('x')], { name: 'all' }), ok('b', when('all.failed'))],
    ran: 'x b',
  },
  {
    rule: 'foreach: a guard on the name of the block that is not reached',
    flow: [each([1], [boom('x')], { name: 'all' }), ok('b', when('all.success')), ok('c')],
    ran: 'x',
    fails: 'x',
  },
  {
    rule: 'foreach: handled inside each item',
    flow: [each([1, 2], [boom('x'), ok('y', when('x.failed'))])],
    ran: 'x y x y',
  },
  {
    rule: 'foreach: continueOnError on the agent',
    flow: [each([1, 2], [boom('x', { continueOnError: true })]), ok('b')],
    ran: 'x x b',
  },
  {
    rule: 'foreach: continueOnError on the block',
    flow: [each([1, 2], [boom('x')], { continueOnError: true }), ok('b')],
    ran: 'x b',
  },
  {
    rule: 'foreach: its condition checked the failure, and led to items',
    flow: [boom('a'), each([1], [ok('b')], when('a.failed'))],
    ran: 'a b',
  },
  {
    rule: 'foreach: its condition checked the failure, and led to no step',
    flow: [boom('a'), each([], [ok('b')], when('a.failed'))],
    ran: 'a',
    fails: 'a',
  },
  {
    rule: 'foreach: a guard inside checks a failure outside',
    flow: [boom('a'), each([1, 2], [ok('b', when('a.failed'))]), ok('c')],
    ran: 'a b b c',
  },
  {
    rule: 'foreach: a guard inside would check a failure outside, but there is no item',
    flow: [boom('a'), each('${input.none}', [ok('b', when('a.failed'))])],
    input: { none: [] },
    ran: 'a',
    fails: 'a',
  },
  {
    rule: 'foreach: breakWhen does not count as a guard',
    flow: [each([1, 2], [boom('x')], { breakWhen: '${x.failed}' }), ok('b')],
    ran: 'x',
    fails: 'x',
  },
  {
    rule: 'foreach in foreach: the inner block is guarded in the outer item',
    flow: [each([1, 2], [each([1, 2], [boom('x')], { name: 'inner' }), ok('y', when('inner.failed'))])],
    ran: 'x y x y',
  },
  // The guard led to a list that has steps left: the failure is pending until a step of it runs.
  ...(
    [
      ['a step whose condition does not hold', ok('x', when('false'))],
      ['a foreach without items', each([], [ok('x')])],
      ['an inner if that is not taken', branch('false', [ok('x')])],
      ['an inner if that leads to nothing', branch('true', [])],
      ['a switch without a case', { switch: "'none'", cases: { other: [ok('x')] } }],
      ['a while without rounds', { while: 'false', steps: [ok('x')] }],
      ['a sleep that is skipped', { sleep: 5, ...when('false') }],
      ['a wait that is skipped', { wait: 'go', ...when('false') }],
      ['a router without a hit', route('x', [{ condition: '${false}', member: 'm' }])],
      ['a parallel that is skipped', { parallel: [ok('x')], ...when('false') }],
      ['a try in which nothing runs', { try: [ok('x', when('false'))], catch: [ok('y')] }],
      ['an inner branch in which nothing runs', branch('true', [ok('x', when('false')), ok('y', when('false'))])],
    ] as const
  ).flatMap(([what, nothing]): readonly Row[] => [
    {
      rule: `if: the branch continues after ${what}`,
      flow: [boom('a'), branch('a.failed', [nothing, ok('r')]), ok('z')],
      ran: 'a r z',
    },
    {
      rule: `else: the branch continues after ${what}`,
      flow: [boom('a'), branch('a.success', [ok('y2')], [nothing, ok('r')]), ok('z')],
      ran: 'a r z',
    },
    {
      rule: `switch: the case continues after ${what}`,
      flow: [boom('a'), { switch: '${a.failed}', cases: { true: [nothing, ok('r')] } }, ok('z')],
      ran: 'a r z',
    },
    {
      rule: `in a try: the branch continues after ${what}, and nothing is caught`,
      flow: [{ try: [boom('a'), branch('a.failed', [nothing, ok('r')])], catch: [ok('c')] }, ok('z')],
      ran: 'a r z',
    },
    {
      rule: `a try in a branch: the branch continues after ${what}`,
      flow: [boom('a'), branch('a.failed', [{ try: [nothing, ok('r')], catch: [ok('c')] }]), ok('z')],
      ran: 'a r z',
    },
    {
      rule: `a foreach in a branch: it continues after ${what}`,
      flow: [boom('a'), branch('a.failed', [each([1], [nothing, ok('r')])]), ok('z')],
      ran: 'a r z',
    },
  ]),
  {
    rule: 'a branch continues after a branch inside it, in which nothing ran',
    flow: [boom('a'), branch('a.failed', [branch('true', [ok('x', when('false'))]), ok('r')]), ok('z')],
    ran: 'a r z',
  },
  {
    rule: 'a branch in which nothing ran: the run ends after it',
    flow: [boom('a'), branch('a.failed', [ok('x', when('false')), each([], [ok('y')])]), ok('z')],
    ran: 'a',
    fails: 'a',
  },
  {
    rule: 'a branch in which nothing ran, and another guard follows',
    flow: [boom('a'), branch('a.failed', [ok('x', when('false')), ok('y', when('false'))]), ok('z', when('a.failed'))],
    ran: 'a z',
  },
  {
    rule: 'a branch in which nothing ran, inside a branch of another guard on the failure',
    flow: [boom('a'), branch('a.failed', [branch('!a.success', [ok('x', when('false'))]), ok('r')])],
    ran: 'a r',
  },
  {
    rule: 'a failure after the guard is not pending for the branch: the guard did not check it',
    flow: [branch('!a.failed', [boom('a'), ok('x')]), ok('z')],
    ran: 'a',
    fails: 'a',
  },
  {
    rule: 'a failure in the branch itself is not pending for the branch',
    flow: [boom('a'), branch('a.failed', [ok('x', when('false')), boom('y'), ok('r')])],
    ran: 'a y',
    fails: 'y',
  },
  {
    rule: 'another failure is not pending for the branch',
    flow: [boom('a'), boom('b', when('a.failed')), branch('a.failed', [ok('x', when('b.failed && false')), ok('r')])],
    ran: 'a b',
    fails: 'b',
  },
  {
    rule: 'foreach: its condition checked the failure, and the first step of its only item is skipped',
    flow: [boom('a'), each([1], [ok('x', when('false')), ok('r')], when('a.failed')), ok('z')],
    ran: 'a r z',
  },
  {
    rule: 'foreach: its condition checked the failure, and nothing ran in a branch of its only item',
    flow: [boom('a'), each([1], [branch('true', [ok('x', when('false'))]), ok('r')], when('a.failed')), ok('z')],
    ran: 'a r z',
  },
  {
    rule: 'foreach: its condition checked the failure, and nothing of its first item ran',
    flow: [boom('a'), each([1, 2], [ok('x', when('item == 2'))], when('a.failed')), ok('z')],
    ran: 'a x z',
  },

  {
    rule: 'a guard in finally handles no failure of its try, and the steps after the failure do not run',
    flow: [{ try: [boom('a'), ok('x')], finally: [ok('f', when('a.failed'))] }, ok('z')],
    ran: 'a f',
    fails: 'a',
  },
  {
    rule: 'a guard in finally that did not hold',
    flow: [{ try: [boom('a'), ok('x')], finally: [ok('f', when('a.success'))] }, ok('z')],
    ran: 'a',
    fails: 'a',
  },
  {
    rule: 'a guard in finally handles no failure of its catch',
    flow: [{ try: [boom('a')], catch: [boom('b'), ok('x')], finally: [ok('f', when('b.failed'))] }, ok('z')],
    ran: 'a b f',
    fails: 'b',
  },
  {
    rule: 'a guard in finally does not check caught failures',
    flow: [{ try: [boom('a'), ok('x')], catch: [ok('c')], finally: [ok('f', when('a.failed'))] }, ok('z')],
    ran: 'a c f z',
  },
  {
    rule: 'a guard in finally is no later guard for a failure before the try',
    flow: [boom('a'), { try: [ok('x')], catch: [], finally: [ok('f', when('a.failed'))] }, ok('z')],
    ran: 'a',
    fails: 'a',
  },
  {
    rule: 'a guard in finally handles a failure of that finally',
    flow: [{ try: [ok('a')], finally: [boom('f'), ok('g', when('f.failed'))] }, ok('z')],
    ran: 'a f g z',
  },
  {
    rule: 'a guard around a try leads to the steps of its finally too',
    flow: [boom('a'), branch('a.failed', [{ try: [ok('x', when('false'))], finally: [ok('f')] }]), ok('z')],
    ran: 'a f z',
  },
  {
    rule: 'finally runs to its end after any failure before it',
    flow: [{ try: [boom('a')], finally: [ok('f'), ok('g')] }, ok('z')],
    ran: 'a f g',
    fails: 'a',
  },
  ...(
    [
      ['if', (steps: readonly Step[]) => branch('true', steps)],
      ['try', (steps: readonly Step[]) => ({ try: steps, catch: [ok('c')] })],
      ['try with finally', (steps: readonly Step[]) => ({ try: steps, finally: [] })],
      ['catch', (steps: readonly Step[]) => ({ try: [boom('t')], catch: steps })],
      ['foreach of one item', (steps: readonly Step[]) => each([1], steps)],
      ['foreach in foreach', (steps: readonly Step[]) => each([1], [each([1], steps)])],
    ] as const
  ).flatMap(([what, block]): readonly Row[] => {
    const before = what === 'catch' ? 'a t' : 'a';
    return [
      {
        rule: `${what}: an outer failure without a later guard ends the steps inside`,
        flow: [boom('a'), block([ok('x', when('a.success')), ok('y')]), ok('z')],
        ran: before,
        fails: 'a',
      },
      {
        rule: `${what}: an outer failure with a guard after the block does not`,
        flow: [boom('a'), block([ok('x', when('a.success')), ok('y')]), ok('z', when('a.failed'))],
        ran: `${before} y z`,
      },
      {
        rule: `${what}: an outer failure that was handled inside does not`,
        flow: [boom('a'), block([ok('x', when('a.failed')), ok('y')]), ok('z')],
        ran: `${before} x y z`,
      },
    ];
  }),
  {
    rule: 'foreach: an outer failure whose guard has passed is pending while another item begins',
    flow: [boom('a'), each([1, 2, 3], [ok('x', when('a.failed && item == 2')), ok('y')]), ok('z')],
    ran: 'a y x y y z',
  },
  {
    rule: 'foreach: ... and ends the steps of the last item',
    flow: [boom('a'), each([1, 2], [ok('x', when('a.success')), ok('y')]), ok('z')],
    ran: 'a y',
    fails: 'a',
  },
  {
    rule: 'foreach: with several items at a time, each item ends',
    flow: [boom('a'), each([1, 2], [ok('x', when('a.success')), ok('y')], { concurrency: 2 }), ok('z')],
    ran: 'a y y',
    fails: 'a',
  },
  {
    rule: 'while: an outer failure whose guard has passed is pending for the next round',
    flow: [
      boom('a'),
      { while: '!x.executed', steps: [ok('x', when('a.failed && y.executed')), ok('y')], maxIterations: 5 },
      ok('z'),
    ],
    ran: 'a y x y z',
  },

  {
    rule: 'a condition that cannot be evaluated fails the agent, and a guard handles that',
    flow: [ok('a', when('input.text - 1')), ok('b', when('a.failed'))],
    input: { text: 'x' },
    ran: 'b',
  },
  {
    rule: 'an input that cannot be evaluated fails the agent, and a guard handles that',
    flow: [echo('a', '${input.text - 1}'), ok('b', when('a.failed'))],
    input: { text: 'x' },
    ran: 'b',
  },
  {
    rule: 'an `if` that cannot be evaluated ends the run',
    flow: [branch('input.text - 1', [ok('a')]), ok('b')],
    input: { text: 'x' },
    ran: '',
    fails: '',
  },
  {
    rule: 'continueOnError handles a condition that cannot be evaluated',
    flow: [ok('a', { ...when('input.text - 1'), continueOnError: true }), ok('b')],
    input: { text: 'x' },
    ran: 'b',
  },
  {
    rule: 'continueOnError handles a foreach without a list',
    flow: [each('${input.text}', [ok('a')], { continueOnError: true }), ok('b')],
    input: { text: 'x' },
    ran: 'b',
  },
];

describe('the failure of an agent', () => {
  it.each(rows.map((row) => [row.rule, row] as const))('%s', async (_rule, { flow, input, ran, fails }) => {
    const members = ['b', 'c', 'm'].filter((name) => !JSON.stringify(flow).includes(`"agent":"${name}"`));
    const agents = [...members.map((name) => ({ ...ok(name) })), boom('bad')].map(({ agent, ...rest }) => ({
      name: agent,
      ...rest,
    }));
    const used = agents.filter(({ name }) => JSON.stringify(flow).includes(`"member":"${name as string}"`));
    const { run, ran: seen } = scene({ flow, agents: used });
    const result = await run(input);
    expect(seen.join(' ')).toBe(ran);
    expect(result.status).toBe(fails === undefined ? 'completed' : 'failed');
    if (fails === undefined) expect(result.error).toBeUndefined();
    else if (fails === '')
      expect(result.error).toMatchObject({ code: 'EXPRESSION_ERROR', message: expect.stringContaining('number') });
    else expect(result.error).toEqual({ code: 'AGENT_FAILED', message: `boom in ${fails}`, agent: fails });
  });

  it('outputs are computed for a failed run, and reading .failed in them handles nothing', async () => {
    const { run } = scene({
      flow: [ok('a'), boom('b'), ok('c')],
      outputs: { first: '${a.output}', bad: '${b.failed}', why: '${b.error.message}', never: '${c.executed}' },
    });
    const result = await run();
    expect(result.status).toBe('failed');
    expect(result.partialOutput).toEqual({ first: 'a', bad: true, why: 'boom in b', never: false });
  });

  it('the error of an agent reads as code, message and agent, and its output as null', async () => {
    const { run } = scene({
      flow: [
        boom('a'),
        echo(
          'b',
          {
            error: '${a.error}',
            code: '${a.error.code}',
            text: 'it said: ${a.error.message}',
            output: '${a.output}',
            executed: '${a.executed}',
          },
          when('a.failed'),
        ),
      ],
      outputs: { all: '${b.output}' },
    });
    expect((await run()).output).toEqual({
      all: {
        error: { code: 'AGENT_FAILED', message: 'boom in a', agent: 'a' },
        code: 'AGENT_FAILED',
        text: 'it said: boom in a',
        output: null,
        executed: true,
      },
    });
  });

  it.each([
    ['a text', 'plain text', 'plain text'],
    ['an object with a message', { message: 'from outside' }, 'from outside'],
    ['an object without', { status: 7 }, '{"status":7}'],
    ['nothing', undefined, 'undefined'],
    ['an error without a message', new RangeError(), 'RangeError'],
  ])('the message is the text of the thrown value: %s', async (_what, thrown, message) => {
    const { run } = scene([ok('x'), { ...boom('a'), config: { script: 'throws' } }], {
      scripts: {
        throws: () => {
          throw thrown;
        },
      },
    });
    expect((await run()).error).toEqual({ code: 'AGENT_FAILED', message, agent: 'a' });
  });

  it('a rejected promise fails the agent like an exception', async () => {
    const { run } = scene([{ ...boom('a'), config: { script: 'rejects' } }], {
      scripts: { rejects: () => Promise.reject(new Error('later')) },
    });
    expect((await run()).error).toEqual({ code: 'AGENT_FAILED', message: 'later', agent: 'a' });
  });

  it('an output that cannot be computed is named and fails a run without an error; other outputs, and the error of a failed run, stay', async () => {
    const outputs = {
      a: '${a.success}',
      x: '${input.text - 1}',
      'y z': '${input.text * 2}',
      z: { t: '${input.text}' },
    };
    const right = await scene({ flow: [ok('a')], outputs }).run({ text: 'x' });
    expect(right.status).toBe('failed');
    expect(right.partialOutput).toEqual({ a: true, x: null, 'y z': null, z: { t: 'x' } });
    expect(right.error).toEqual({
      code: 'EXPRESSION_ERROR',
      message: expect.stringMatching(/^outputs\.x: .*number/),
      details: { expression: 'input.text - 1', index: 11 },
    });
    const wrong = await scene({ flow: [boom('a')], outputs }).run({ text: 'x' });
    expect(wrong.error?.message).toBe('boom in a');
    expect(wrong.partialOutput).toMatchObject({ a: false, x: null, z: { t: 'x' } });
  });

  it('outputs that are too large together: the output that exceeds the limit is named, the others stay', async () => {
    const big = 'x'.repeat(1.5 * 1024 * 1024);
    const outputs = { a: '${a.output}', b: '${a.output}', c: '${a.output}', d: 4 };
    const run = await scene({ flow: [ok('a', { config: { give: big } })], outputs }).run();
    expect(run).toMatchObject({ status: 'failed', partialOutput: { a: big, b: big, c: null, d: 4 } });
    expect(run.error).toEqual({
      code: 'INVALID_OUTPUT',
      message: 'outputs.c: makes the outputs larger than 4 MiB together; store large values and give their keys',
    });
  });

  it('random values differ between outputs', async () => {
    const { output } = await scene({ flow: [], outputs: { a: '${uuid()}', b: '${uuid()}' } }).run();
    const { a, b } = output as { a: string; b: string };
    expect(a).not.toBe(b);
  });

  it('a flow without steps completes', async () => {
    const result = await scene({ flow: [], outputs: { x: '${input.x}' } }).run({ x: 1 });
    expect([result.status, result.output, result.metrics.agents]).toEqual(['completed', { x: 1 }, 0]);
  });
});

describe('a skipped agent', () => {
  const view = (name: string) => ({
    executed: `\${${name}.executed}`,
    success: `\${${name}.success}`,
    failed: `\${${name}.failed}`,
    output: `\${${name}.output}`,
    // Of an unknown type: a field that the output can't have is refused when it is loaded.
    deep: `\${parseJson(json(${name}.output)).x.y}`,
    error: `\${${name}.error}`,
  });
  const untouched = { executed: false, success: false, failed: false, output: null, deep: null, error: null };

  it.each([
    ['whose condition did not hold', { flow: [ok('a', when('false')), ok('z')] }, 'a'],
    ['in the branch that was not chosen', { flow: [branch('false', [ok('a')]), ok('z')] }, 'a'],
    [
      'that no step names',
      { flow: [ok('z')], agents: [{ name: 'a', operation: 'code', config: { script: 'ok' } }] },
      'a',
    ],
    ['after the end of a failed run', { flow: [boom('z'), ok('a')] }, 'a'],
    [
      'that a route did not choose',
      {
        flow: [route('r', [{ condition: '${false}', member: 'a' }])],
        agents: [{ name: 'a', operation: 'code', config: { script: 'ok' } }],
      },
      'a',
    ],
    ['whose condition can not be read', { flow: [ok('a', { ...when('input.text - 1'), continueOnError: true })] }, 'a'],
    [
      'whose condition, which reads the state, can not be read',
      { flow: [ok('a', { ...when('input.text - state.n'), continueOnError: true })], state: { initial: { n: 1 } } },
      'a',
    ],
    [
      'a block whose condition can not be read',
      { flow: [each([1], [ok('x')], { name: 'a', ...when('input.text - 1'), continueOnError: true })] },
      'a',
    ],
    [
      'a router whose condition did not hold',
      {
        flow: [route('a', [{ default: true, member: 'm' }], when('false'))],
        agents: [{ name: 'm', operation: 'code', config: { script: 'ok' } }],
      },
      'a',
    ],
    ['a block whose condition did not hold', { flow: [each([1], [ok('x')], { name: 'a', ...when('false') })] }, 'a'],
  ])('an agent %s: executed, success and failed are false, output is null', async (what, definition, name) => {
    const { run, ran } = scene({ ...definition, outputs: { view: view(name) } });
    const output = outputsOf(await run({ text: 'x' }));
    const unread = {
      ...untouched,
      failed: true,
      error: expect.objectContaining({ code: 'EXPRESSION_ERROR', agent: 'a' }),
    };
    expect(output).toEqual({ view: what.includes('can not be read') ? unread : untouched });
    expect(ran).not.toContain('a');
  });

  it('an agent that ran: executed and success are true, and metrics count only agents that ran', async () => {
    const { run } = scene({
      flow: [ok('a'), ok('b', when('false')), boom('c', { continueOnError: true })],
      outputs: { view: view('a') },
    });
    const result = await run();
    expect(result.output).toEqual({ view: { ...untouched, executed: true, success: true, output: 'a' } });
    expect(result.metrics.agents).toBe(2);
    expect(result.agents.map(({ name, key, status }) => [name, key, status])).toEqual([
      ['a', 'flow[0]', 'completed'],
      ['c', 'flow[2]', 'failed'],
    ]);
  });
});
