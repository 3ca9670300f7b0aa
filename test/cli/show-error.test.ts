/** How the command line shows why something failed: the details, the stack and the causes of an error. */

import { expect, it } from 'vitest';
import { describeError } from '../../src/cli/progress/show-error.ts';
import { describeExecution } from '../../src/cli/progress/show-execution.ts';
import { streamLogger } from '../../src/cli/terminal/stream-logger.ts';
import type { Execution } from '../../src/engine/execution/execution.ts';

const own = 'at charge (/project/scripts/charge.mjs:3:9)';
const packaged = 'at parse (/project/node_modules/zod/index.js:1:2)';
const runtime = 'at node:internal/process/task_queues:95:5';
const stack = (...frames: readonly string[]) => `Error: refused\n    ${frames.join('\n    ')}`;

it('shows the details, the frames, and the causes with their frames', () => {
  const cause = { name: 'Error', code: 'ECONNREFUSED', message: 'no\nserver', stack: stack(own) };
  const shown = describeError({ details: { status: 402 }, stack: stack(own, runtime), cause: { message: 'x', cause } });
  expect(shown).toEqual([
    ...['details {"status":402}', own],
    ...['caused by Error: x', 'caused by Error ECONNREFUSED: no server', `  ${own}`],
  ]);
});

it('begins with a frame of the project when the error comes from a package', () => {
  expect(describeError({ stack: stack(packaged, own) })).toEqual([own.replace('at', 'in'), packaged, own]);
  expect(describeError({ stack: stack(own, packaged, own, runtime, packaged) })).toEqual([own, packaged, own]);
  expect(describeError({ stack: stack(runtime) })).toEqual([runtime]);
});

it('shows an error of any form, without control characters', () => {
  for (const value of [1, 'x', null, [1], { stack: 5 }])
    expect(describeError({ stack: value, cause: value })).toBeDefined();
  expect(describeError({ stack: stack('at \u001b[31mred') })).toEqual(['at \ufffd[31mred']);
  let cause: object = { message: 'end' };
  for (let i = 0; i < 50; i++) cause = { message: `${i}`, cause };
  expect(describeError({ cause })).toHaveLength(5);
});

it('a record shows the stack of a failed agent once, at the agent', () => {
  const error = { code: 'AGENT_FAILED', message: 'refused', agent: 'a', details: { n: 1 }, stack: stack(own) };
  const run = {
    name: 'a',
    key: 'flow[0]',
    status: 'failed',
    attempts: 1,
    startedAt: 0,
    duration: 1,
    output: null,
    error,
  };
  const record = {
    ...{ id: 'exec_1', ensemble: 'e', version: 'v', status: 'failed', trigger: { type: 'call' } },
    input: {},
  };
  const rest = { output: null, createdAt: 0, metrics: { totalDuration: 0, agents: 1 }, error };
  const show = (agents: readonly object[]) =>
    describeExecution({ ...record, ...rest, agents } as unknown as Execution, 0, undefined);
  expect(show([run])).toContain(`AGENT_FAILED: refused\n        details {"n":1}\n        ${own}\n`);
  expect(show([run]).split(own)).toHaveLength(2);
  expect(show([])).toContain(`refused\n            details {"n":1}\n            ${own}\n`);
});

it('a line of the log has the stack of its error below it, and the fields of a child logger', () => {
  const lines: string[] = [];
  const logger = streamLogger((text) => lines.push(text));
  const err = Object.assign(new Error('refused'), { stack: stack(own) });
  logger.child?.({ agent: 'a' }).warn({ err }, 'attempt failed');
  logger.child?.({ agent: 'a' }).info('text' as never);
  expect(lines).toEqual([
    `warn  attempt failed {"agent":"a","err":"refused"}\n        ${own}\n`,
    'info  text {"agent":"a"}\n',
  ]);
});
