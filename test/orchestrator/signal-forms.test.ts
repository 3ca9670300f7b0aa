/** `fields`, `title` and `text` of a `wait` are the form of its signal: every way in is checked, and a payload that does not fit changes nothing. */

import { describe, expect, it } from 'vitest';
import { createTestOrchestrator, type TestOrchestratorOptions } from '../../src/entries/testing.ts';
import { createHandler, isOrchestratorError } from '../../src/index.ts';

const FORM = `
      title: Pay the order back?
      text: The clerk decides.
      fields:
        type: object
        required: [decision]
        properties:
          decision: { enum: [pay, refuse], title: Decision }
          cents: { type: integer, minimum: 1, default: 100 }
          lines: { type: array, items: { type: string } }
          by: { type: string }`;
const definition = (more = '', form = FORM) => `
name: refund
flow:
  - agent: ask
    operation: code
    config: { script: ask }
    input: { link: "\${signalUrl('decision', { by: 'ada' }${more})}" }
  - wait: decision
    name: answer
    onTimeout: continue
    timeout: 3d${form.replaceAll('\n      ', '\n    ')}
outputs: { decision: "\${answer.output.decision}", cents: "\${answer.output.cents}", by: "\${answer.output.by}" }
`;

function scene(source = definition(), options: Partial<TestOrchestratorOptions> = {}) {
  const links: string[] = [];
  const orchestrator = createTestOrchestrator({
    ensembles: [source],
    scripts: {
      ask: ({ input }) => {
        links.push(input.link);
      },
    },
    signalLinks: { url: 'https://flows.example', secret: 'a secret of at least thirty-two characters' },
    ...options,
  } as TestOrchestratorOptions);
  const handler = createHandler(orchestrator as never);
  return { orchestrator, handler, link: () => links[0] as string };
}

async function begun(source?: string) {
  const made = scene(source);
  const handle = await made.orchestrator.start('refund');
  await made.orchestrator.clock.advance(1_000);
  return { ...made, handle };
}

const refusal = async (call: Promise<unknown>) => {
  const error = await call.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!isOrchestratorError(error, 'INVALID_INPUT')) throw error ?? new Error('was accepted');
  return error;
};

describe('executions.signal', () => {
  it('refuses a payload that does not fit with INVALID_INPUT and every place, and the wait goes on', async () => {
    const { orchestrator, handle } = await begun();
    const error = await refusal(orchestrator.executions.signal(handle.id, 'decision', { decision: 'yes', cents: 0 }));
    expect(error.message).toContain('the payload of signal `decision` does not fit the `fields` of its `wait`');
    expect(error.details.issues?.map(({ path }) => path)).toEqual(['decision', 'cents']);
    expect((await orchestrator.executions.get(handle.id)).status).toBe('waiting');
    await orchestrator.executions.signal(handle.id, 'decision', { decision: 'pay', by: 'bob' });
    expect((await handle.result()).output).toEqual({ decision: 'pay', cents: 100, by: 'bob' });
  });

  it('refuses a payload that comes before its wait too, and one that is missing', async () => {
    const { orchestrator } = scene();
    const handle = await orchestrator.start('refund');
    await refusal(orchestrator.executions.signal(handle.id, 'decision'));
    await refusal(orchestrator.executions.signal(handle.id, 'decision', 'pay'));
    await orchestrator.executions.signal(handle.id, 'decision', { decision: 'refuse' });
    expect((await handle.result()).output).toMatchObject({ decision: 'refuse' });
  });

  it('a signal without `fields` takes any payload', async () => {
    const { orchestrator, handle } = await begun(definition('', ''));
    await orchestrator.executions.signal(handle.id, 'decision', ['anything']);
    expect((await handle.result()).status).toBe('completed');
  });
});

it('the record of an execution that waits has the form, by the name of the signal', async () => {
  const { orchestrator, handle } = await begun();
  const { forms } = await orchestrator.executions.get(handle.id);
  expect(forms).toMatchObject({
    decision: { title: 'Pay the order back?', text: 'The clerk decides.', fields: { required: ['decision'] } },
  });
  await orchestrator.executions.signal(handle.id, 'decision', { decision: 'pay' });
  await handle.result();
  expect(await orchestrator.executions.get(handle.id)).not.toHaveProperty('forms');
});

it('over HTTP, the answer is 400 with the issues, and a webhook that sends the signal is refused the same way', async () => {
  const source = `${definition()}trigger:\n  - { type: webhook, path: /webhooks/decide, public: true, signal: decision, find: { tag: "\${body.tag}" } }\n`;
  const { orchestrator, handler } = scene(source);
  const handle = await orchestrator.start('refund', {}, { tags: ['order=7'] });
  await orchestrator.clock.advance(1_000);
  const { token } = await orchestrator.tokens.create({ name: 'a', scopes: ['execute:ensembles'] });
  const post = (path: string, body: unknown) =>
    handler.fetch(
      new Request(`http://x${path}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      }),
    );
  const answer = await post(`/api/v1/executions/${handle.id}/signals/decision`, { decision: 'no' });
  expect(answer.status).toBe(400);
  expect(await answer.json()).toMatchObject({ error: { code: 'INVALID_INPUT', issues: [{ path: 'decision' }] } });
  const hook = await post('/webhooks/decide', { tag: 'order=7', decision: 'no' });
  expect(hook.status).toBe(400);
  expect((await post('/webhooks/decide', { tag: 'order=7', decision: 'pay' })).status).toBeLessThan(300);
  expect((await handle.result()).output).toMatchObject({ decision: 'pay' });
});

describe('the page of `signalUrl(name)`', () => {
  it('shows the form without the keys of the payload, and sends what is put in', async () => {
    const { handler, handle, link } = await begun();
    const html = await (await handler.fetch(new Request(link()))).text();
    expect(html).toContain('<h1>Pay the order back?</h1><p>The clerk decides.</p>');
    expect(html).toContain('<option value="pay">pay</option>');
    expect(html).toContain('<textarea name="lines"></textarea>');
    const send = (form: Record<string, string>) =>
      handler.fetch(new Request(link(), { method: 'POST', body: new URLSearchParams(form) }));
    const wrong = await send({ decision: 'pay', cents: '0', lines: 'no json' });
    expect(wrong.status).toBe(422);
    const page = await wrong.text();
    expect(page).toContain('<em>must be at least 1, not 0</em>');
    expect(page).toContain('must be a list');
    expect((await send({ decision: 'pay', lines: '["a"]' })).status).toBe(200);
    expect((await handle.result()).output).toEqual({ decision: 'pay', cents: 100, by: 'ada' });
  });

  it('asks nothing that the payload answers, and a payload that does not fit is never sent', async () => {
    const fields =
      '\n      fields: { type: object, required: [by], properties: { by: { enum: [ada, bob] }, decision: {}, cents: {} } }';
    const { handler, handle, link } = await begun(definition('', fields));
    expect(await (await handler.fetch(new Request(link()))).text()).not.toContain('<select');
    expect((await handler.fetch(new Request(link(), { method: 'POST' }))).status).toBe(200);
    expect((await handle.result()).output).toMatchObject({ by: 'ada' });

    const other = await begun(
      definition('', fields.replace('[ada, bob]', '[bob]')).replace("by: 'ada'", "by: string('ada')"),
    );
    const refused = await other.handler.fetch(new Request(other.link(), { method: 'POST' }));
    expect(refused.status).toBe(422);
    expect(await refused.text()).toContain('<em>by must be');
    expect((await other.orchestrator.executions.get(other.handle.id)).status).toBe('waiting');
  });

  it('checks the rules of the whole form against the payload together with what is put in', async () => {
    const fields =
      '\n      fields: { type: object, minProperties: 2, properties: { by: { type: string }, decision: { type: string }, cents: {} } }';
    const { handler, handle, link } = await begun(definition('', fields));
    const none = await handler.fetch(new Request(link(), { method: 'POST' }));
    expect(none.status).toBe(422);
    const put = new URLSearchParams({ decision: 'pay' });
    expect((await handler.fetch(new Request(link(), { method: 'POST', body: put }))).status).toBe(200);
    expect((await handle.result()).output).toEqual({ decision: 'pay', cents: null, by: 'ada' });
  });

  it('the third argument wins: its title, and its fields in place of those of the wait', async () => {
    const titled = await begun(definition(", { title: 'Order 7' }"));
    const html = await (await titled.handler.fetch(new Request(titled.link()))).text();
    expect(html).toContain('<h1>Order 7</h1><p>The clerk decides.</p>');
    expect(html).toContain('<option value="pay">');

    const own = "{ type: 'object', properties: { cents: { type: 'integer' } } }";
    const { handler, handle, link } = await begun(definition(`, { fields: ${own} }`));
    expect(await (await handler.fetch(new Request(link()))).text()).not.toContain('<select');
    await handler.fetch(new Request(link(), { method: 'POST', body: new URLSearchParams({ cents: '5' }) }));
    expect((await handle.result()).output).toEqual({ decision: null, cents: 5, by: 'ada' });
  });
});

describe('a definition', () => {
  const problems = (source: string) => {
    try {
      scene(source);
      return [];
    } catch (error) {
      if (!isOrchestratorError(error, 'INVALID_DEFINITION')) throw error;
      return error.details.issues.map(({ path, message }) => `${path}: ${message}`);
    }
  };

  it('that reads a field which the form does not have is refused', () => {
    const [problem] = problems(definition().replace('answer.output.cents', 'answer.output.cent'));
    expect(problem).toContain('outputs.cents: there is no `cent` in `answer.output`');
  });

  it('whose link has a payload that the form never takes is refused', () => {
    expect(problems(definition().replace("{ by: 'ada' }", "{ bye: 'ada' }"))[0]).toContain(
      'flow[0].input.link: the signal `decision` has no field `bye`; its `fields` are `decision`, `cents`, `lines` and `by`',
    );
    expect(problems(definition().replace("{ by: 'ada' }", '{ cents: true }'))[0]).toContain(
      '`cents` of the signal `decision` is a number, and this is true',
    );
    expect(problems(definition(", { fields: { type: 'object', properties: {} } }"))).toEqual([]);
  });

  it('with a wrong schema, with expressions in texts, or with two forms of one signal is refused', () => {
    expect(problems(definition('', '\n      fields: { type: string }'))).toEqual([
      'flow[1].fields: must be a JSON Schema with `type: object` and `properties`',
    ]);
    const wrong = definition('', '\n      fields: { type: object, properties: { a: { type: strin } } }');
    expect(problems(wrong)[0]).toContain('flow[1].fields.properties.a.type');
    expect(problems(definition('', '\n      title: "Order ${input.order}"'))[0]).toContain(
      'flow[1].title: must be plain text',
    );
    const twice = definition().replace('outputs: {', '  - { wait: decision, title: Another }\noutputs: {');
    expect(problems(twice)[0]).toContain('flow[2].wait: another wait for `decision` says something else');
    const once = definition().replace('outputs: {', '  - { wait: decision }\noutputs: {');
    expect(problems(once)).toEqual([]);
  });
});
