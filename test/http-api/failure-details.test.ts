/** Why an execution failed, over HTTP: who gets the details and the stack of its error. */

import { describe, expect, it } from 'vitest';
import type { TokenScope } from '../../src/engine/access/token.ts';
import { OrchestratorError } from '../../src/engine/base/errors.ts';
import { HOSTS } from './hosts.ts';
import { createService, post, readResponse } from './service.ts';

const details = { status: 402, body: 'card refused' };
const boom = () => {
  throw new OrchestratorError('AGENT_FAILED', 'refused', { details, cause: new Error('the cause') });
};

describe('the response of a failed execution', () => {
  const [host] = HOSTS;
  const ask = async (...scopes: TokenScope[]) => {
    const service = createService({}, { scripts: { boom }, errors: { stack: true } });
    const send = await (host as (typeof HOSTS)[number]).open(service.handler);
    const headers = await service.bearer(...scopes);
    const { body, status } = await readResponse(send('/api/v1/execute/ensemble/failing', post({}, headers)));
    const read = async (path: string) => (await readResponse(send(path, { headers }))).body;
    return { body, status, read };
  };

  it.each([
    ['read:executions', ['execute:ensembles', 'read:executions'] as const, details],
    ['admin', ['admin'] as const, details],
    ['execute:ensembles alone', ['execute:ensembles'] as const, undefined],
  ])('with %s', async (_what, scopes, expected) => {
    const { body, status } = await ask(...scopes);
    expect(status).toBe(500);
    expect(body.error).toMatchObject({
      code: 'EXECUTION_FAILED',
      message: 'refused',
      reason: 'AGENT_FAILED',
      agent: 'charge',
    });
    expect(body.error.details).toEqual(expected);
    expect(JSON.stringify(body)).not.toMatch(/the cause|boom|stack/);
  });

  it('has no stack: only the record of the execution and its agents has it', async () => {
    const { body, read } = await ask('execute:ensembles', 'read:executions');
    const path = `/api/v1/executions/${body.error.executionId}`;
    const record = await read(path);
    expect(record.error).toMatchObject({
      details,
      stack: expect.stringContaining('boom'),
      cause: { message: 'the cause' },
    });
    expect((await read(`${path}/agents`)).agents[0].error).toEqual(record.error);
    const { executions } = await read('/api/v1/executions');
    expect(executions[0].error).toEqual({ code: 'AGENT_FAILED', message: 'refused', agent: 'charge', details });
  });
});
