/** A response shows what the token's scopes grant: a caller that may only execute sees an execution's status, and none of its content. */

import { beforeEach, describe, expect, it } from 'vitest';
import type { TokenScope } from '../../src/engine/access/token.ts';
import { type Ask, HOSTS } from './hosts.ts';
import { createService, type JsonResponse, post, readResponse, type Service } from './service.ts';

type Verb = 'cancel' | 'retry' | 'signals/go';

const VERBS: readonly Verb[] = ['cancel', 'retry', 'signals/go'];
const SECRET = 'for readers alone';
const ENSEMBLES = [
  { name: 'ask', flow: [{ wait: 'go' }], outputs: { note: '${input.note}' } },
  { name: 'failing', flow: [{ agent: 'charge', operation: 'code', config: { script: 'boom' } }] },
];
const AGENTS = [
  { name: 'failing', operation: 'code', config: { script: 'boom' } },
  { name: 'waiting', operation: 'code', config: { script: 'wait' } },
];

describe.each(HOSTS)('scopes by $host', ({ open }) => {
  let service: Service;
  let ask: Ask;
  beforeEach(async () => {
    service = createService({}, { ensembles: ENSEMBLES, agents: AGENTS });
    ask = await open(service.handler);
  });
  /** Starts an execution on which the verb is allowed. */
  const begin = async (verb: Verb, kind: 'ensemble' | 'agent'): Promise<string> => {
    const { orchestrator } = service;
    const input = { note: SECRET };
    if (verb === 'retry') {
      const run = kind === 'agent' ? orchestrator.executeAgent : orchestrator.execute;
      return (await run('failing', input)).id;
    }
    const run = kind === 'agent' ? orchestrator.startAgent('waiting', input) : orchestrator.start('ask', input);
    const { id } = await run;
    await service.clock.advance(0);
    return id;
  };
  const send = async (id: string, verb: Verb, scopes: readonly TokenScope[]): Promise<JsonResponse> =>
    readResponse(ask(`/api/v1/executions/${id}/${verb}`, post('', await service.bearer(...scopes))));

  const SLIM = { executionId: expect.stringMatching(/^exec_/), status: expect.any(String) };
  const FULL = { id: expect.stringMatching(/^exec_/), input: { note: SECRET }, trigger: expect.anything() };
  const CASES = VERBS.flatMap((verb) => [
    { verb, kind: 'ensemble', scopes: ['execute:ensembles'], expected: SLIM },
    { verb, kind: 'ensemble', scopes: ['execute:ensembles', 'execute:agents'], expected: SLIM },
    { verb, kind: 'ensemble', scopes: ['execute:ensembles', 'read:executions'], expected: FULL },
    { verb, kind: 'ensemble', scopes: ['admin'], expected: FULL },
    { verb, kind: 'agent', scopes: ['execute:ensembles'], expected: undefined },
    { verb, kind: 'agent', scopes: ['execute:ensembles', 'read:executions'], expected: undefined },
    { verb, kind: 'agent', scopes: ['execute:ensembles', 'execute:agents'], expected: SLIM },
    { verb, kind: 'agent', scopes: ['execute:ensembles', 'execute:agents', 'read:executions'], expected: FULL },
    { verb, kind: 'agent', scopes: ['admin'], expected: FULL },
  ]) as readonly { verb: Verb; kind: 'ensemble' | 'agent'; scopes: TokenScope[]; expected: object | undefined }[];

  it.each(CASES)('$verb of an $kind execution with $scopes', async ({ verb, kind, scopes, expected }) => {
    const id = await begin(verb, kind);
    const { status, body, headers } = await send(id, verb, scopes);
    const { orchestrator } = service;
    const before = await orchestrator.executions.get(id);
    if (expected === undefined) {
      expect([status, body]).toMatchObject([
        403,
        { error: { code: 'FORBIDDEN', requiredScope: 'execute:agents', providedScopes: scopes } },
      ]);
      expect(headers.get('www-authenticate')).toContain('scope="execute:agents"');
      // The refused request changed nothing.
      expect((await orchestrator.executions.list()).executions).toHaveLength(1);
      expect(before.status).toBe(verb === 'retry' ? 'failed' : 'running');
      service.release();
      return;
    }
    if (kind === 'agent' && verb === 'signals/go') {
      // The call is allowed, but an agent that runs alone waits for no signal.
      expect([status, body.error.code]).toEqual([400, 'INVALID_INPUT']);
      expect(JSON.stringify(body)).not.toContain(SECRET);
      service.release();
      return;
    }
    expect(status).toBe(verb === 'retry' ? 202 : 200);
    if (verb === 'retry') expect(headers.get('location')).toMatch(/^\/api\/v1\/executions\/exec_/);
    if (expected === SLIM) expect(body).toEqual(SLIM);
    else expect(body).toMatchObject(expected);
    service.release();
  });

  it.each(VERBS)('%s of an unknown id is 404, whatever the token may do', async (verb) => {
    const unknown = 'exec_01M7WWEK7KT35PGB6V8KCP7X7Z';
    expect((await send(unknown, verb, ['execute:ensembles'])).status).toBe(404);
    expect((await send(unknown, verb, ['admin'])).status).toBe(404);
  });

  it('cancelling a cancelled execution shows no more either', async () => {
    const id = await begin('cancel', 'ensemble');
    await send(id, 'cancel', ['admin']);
    await service.clock.advance(0);
    expect(await send(id, 'cancel', ['execute:ensembles'])).toMatchObject({ status: 200 });
    expect((await send(id, 'cancel', ['execute:ensembles'])).body).toEqual({ executionId: id, status: 'cancelled' });
  });

  it('the caller of an ensemble receives its output, whatever scope it lacks', async () => {
    const headers = await service.bearer('execute:ensembles');
    const started = readResponse(ask('/api/v1/execute/ensemble/ask', post({ input: { note: 'mine' } }, headers)));
    await service.clock.advance(0);
    const response = await started;
    expect(response).toMatchObject({ status: 202, body: SLIM });
    const failed = await readResponse(ask('/api/v1/execute/ensemble/failing', post({}, headers)));
    expect(failed).toMatchObject({
      status: 500,
      body: { error: { code: 'EXECUTION_FAILED', metrics: { agents: 1 } } },
    });
  });
});
