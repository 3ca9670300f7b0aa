/** The texts that a model writes, as live events: in the process that runs the execution, and not stored. */

import { describe, expect, it } from 'vitest';
import { createTestOrchestrator } from '../../src/entries/testing.ts';
import type { Operation, OrchestratorEvent, OrchestratorOptions } from '../../src/index.ts';
import { createHandler } from '../../src/index.ts';
import { deferred, turns } from '../engine/scene.ts';

/** Writes what the test tells it to. */
function writer(options: Pick<OrchestratorOptions, 'secrets'> = {}) {
  const begun = deferred();
  const end = deferred();
  let emit: (text: string) => void = () => {};
  const operation: Operation = {
    name: 'write',
    async run({ emitText }) {
      emit = emitText;
      begun.resolve(undefined);
      await end.promise;
      return 'done';
    },
  };
  const orchestrator = createTestOrchestrator({
    ensembles: [{ name: 'e', flow: [{ agent: 'author', operation: 'write' }] }],
    operations: [operation],
    ...options,
  });
  return { orchestrator, begun: begun.promise, end: () => end.resolve(undefined), write: (text: string) => emit(text) };
}

const textsOf = (events: readonly OrchestratorEvent[]) =>
  events.flatMap((event) => (event.event === 'agent.delta' ? [event.data.text] : []));

describe('agent.delta', () => {
  it('reaches a listener at once, part by part', async () => {
    const { orchestrator, begun, end, write } = writer();
    const heard: OrchestratorEvent<'agent.delta'>[] = [];
    orchestrator.on('agent.delta', (event) => heard.push(event));
    const { id } = await orchestrator.start('e');
    await begun;
    write('Hel');
    expect(heard.map(({ data }) => data)).toEqual([
      { executionId: id, ensemble: 'e', agent: 'author', key: 'flow[0]', text: 'Hel' },
    ]);
    write('lo');
    expect(textsOf(heard)).toEqual(['Hel', 'lo']);
    end();
    await orchestrator.result(id);
    await orchestrator.close();
  });

  it('comes in the stream between stored events, with the id of the event before it', async () => {
    const { orchestrator, begun, end, write } = writer();
    const { id } = await orchestrator.start('e');
    const seen: [string, string][] = [];
    const reading = (async () => {
      for await (const { id: number, event } of orchestrator.executions.events(id)) {
        seen.push([number, event.event === 'agent.delta' ? event.data.text : event.event]);
      }
    })();
    await begun;
    await turns(20);
    write('one');
    await turns(20);
    write('two');
    await turns(20);
    end();
    await orchestrator.result(id);
    await reading;
    expect(seen).toEqual([
      ['1', 'execution.started'],
      ['1', 'one'],
      ['1', 'two'],
      ['2', 'agent.completed'],
      ['3', 'execution.completed'],
    ]);
    await orchestrator.close();
  });

  it('is not stored: a reader that comes later does not get it', async () => {
    const { orchestrator, begun, end, write } = writer();
    const { id } = await orchestrator.start('e');
    await begun;
    write('lost');
    end();
    await orchestrator.result(id);
    const kinds: string[] = [];
    for await (const { event } of orchestrator.executions.events(id)) kinds.push(event.event);
    expect(kinds).toEqual(['execution.started', 'agent.completed', 'execution.completed']);
    await orchestrator.close();
  });

  it('of a slow reader is joined to one event, and no text is lost', async () => {
    const { orchestrator, begun, end, write } = writer();
    const { id } = await orchestrator.start('e');
    const events = orchestrator.executions.events(id);
    expect((await events.next()).value?.event.event).toBe('execution.started');
    const next = events.next();
    await begun;
    await turns(20);
    for (let i = 0; i < 10_000; i++) write(`${i},`);
    const texts = [(await next).value?.event as OrchestratorEvent];
    end();
    await orchestrator.result(id);
    for await (const { event } of events) texts.push(event);
    const parts = textsOf(texts);
    expect(parts.length).toBeLessThan(5);
    expect(parts.join('')).toBe(Array.from({ length: 10_000 }, (_, i) => `${i},`).join(''));
    await orchestrator.close();
  });

  it('comes over HTTP as a server-sent event', async () => {
    const { orchestrator, begun, end, write } = writer();
    const { token } = await orchestrator.tokens.create({ name: 'reader', scopes: ['read:executions'] });
    const { id } = await orchestrator.start('e');
    const { fetch } = createHandler(orchestrator);
    const response = await fetch(
      new Request(`http://host.example/api/v1/executions/${id}/events`, {
        headers: { authorization: `Bearer ${token}` },
      }),
    );
    const reading = response.text();
    await begun;
    await turns(20);
    write('a "quoted"\nline');
    await turns(20);
    end();
    await orchestrator.result(id);
    expect(await reading).toContain('id: 1\nevent: agent.delta\ndata: {"event":"agent.delta","timestamp":');
    expect(await reading).toContain('"text":"a \\"quoted\\"\\nline"');
    await orchestrator.close();
  });

  it.each([
    ['a secret in three parts', ['the key is planted-', 'secr', 'et-1, really'], 'the key is ***, really'],
    ['a secret of single characters', [...'is planted-secret-1.'], 'is ***.'],
    ['a longer secret that begins with it', ['is planted-', 'secret-1', '-and-more and', ' so on'], 'is *** and so on'],
    ['a secret, in whose end another one may begin', ['is first-secret-secon', ' end'], 'is ***-secon end'],
    ['a part of a secret at the end', ['it begins with plan', 'ted-se'], 'it begins with planted-se'],
    ['no secret', ['nothing', ' to hide'], 'nothing to hide'],
  ])('over HTTP masks a secret that comes in parts, and loses no other text: %s', async (_, parts, expected) => {
    const secrets = {
      KEY: 'planted-secret-1',
      LONG: 'planted-secret-1-and-more',
      FIRST: 'first-secret',
      SECOND: 'secret-second',
    };
    const { orchestrator, begun, end, write } = writer({ secrets });
    const { token } = await orchestrator.tokens.create({ name: 'reader', scopes: ['read:executions'] });
    const { id } = await orchestrator.start('e');
    const url = `http://host.example/api/v1/executions/${id}/events`;
    const request = new Request(url, { headers: { authorization: `Bearer ${token}` } });
    const reading = (await createHandler(orchestrator).fetch(request)).text();
    await begun;
    for (const part of parts) {
      await turns(20);
      write(part);
    }
    await turns(20);
    end();
    await orchestrator.result(id);
    const events = [...(await reading).matchAll(/^data: (.*)$/gm)].map(([, data]) => JSON.parse(data as string));
    expect(textsOf(events).join('')).toBe(expected);
    expect(events.map(({ event }) => event).slice(-2)).toEqual(['agent.completed', 'execution.completed']);
    await orchestrator.close();
  });

  it('after the end of its attempt is dropped', async () => {
    const { orchestrator, begun, end, write } = writer();
    const heard: unknown[] = [];
    orchestrator.on('agent.delta', (event) => heard.push(event));
    const { id } = await orchestrator.start('e');
    await begun;
    end();
    await orchestrator.result(id);
    write('too late');
    expect(heard).toEqual([]);
    await orchestrator.close();
  });
});
