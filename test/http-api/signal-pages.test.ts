/** The page of a signal link says and asks what the third argument of `signalUrl()` says, in the language of the host. */

import { describe, expect, it } from 'vitest';
import { createHandler } from '../../src/http-handlers/create-handler.ts';
import { createOrchestrator } from '../../src/index.ts';

const BASE = { url: 'https://flows.example', secret: 'a secret that nobody can guess, 1' };
const FIELDS = `{ type: 'object', required: ['reason', 'amount'], properties: {
  reason: { type: 'string', title: 'Why?', enum: ['broken', 'late'] },
  amount: { type: 'integer', title: 'Cents', minimum: 1, maximum: 500, description: 'At most 500' },
  note: { type: 'string', maxLength: 1000 },
  urgent: { type: 'boolean', title: 'Urgent' }
} }`;

/** @param page - the third argument */
async function open(page: string, { payload = '{ approved: true }', input = {}, texts = {} } = {}) {
  let link = '';
  const orchestrator = createOrchestrator({
    logger: false,
    signalLinks: { ...BASE, texts },
    scripts: {
      send: ({ input: given }) => {
        link = given;
      },
    },
    ensembles: [
      {
        name: 'ask',
        flow: [
          {
            agent: 'mail',
            operation: 'code',
            config: { script: 'send' },
            input: `\${signalUrl('go', ${payload}, ${page})}`,
          },
          { wait: 'go', name: 'answered' },
        ],
        outputs: { answer: '${answered.output}' },
      },
    ],
  });
  const handler = createHandler(orchestrator);
  const run = await orchestrator.start('ask', input);
  await run.resultUnlessWaiting(0);
  const send = async (init?: RequestInit) => {
    const response = await handler.fetch(new Request(link, init));
    return { status: response.status, html: await response.text() };
  };
  const post = (fields: Record<string, string>) => send({ method: 'POST', body: new URLSearchParams(fields) });
  return { orchestrator, run, send, post };
}

describe('a page with fields', () => {
  it('shows title, text, labels and the button, escaped, and not the payload', async () => {
    const { send } = await open(
      `{ title: 'Refund ' + input.who, text: 'Is it right?', confirm: 'Pay <back>', fields: ${FIELDS} }`,
      {
        input: { who: '<img src=x onerror=alert(1)>\u202e"' },
      },
    );
    const { status, html } = await send();
    expect(status).toBe(200);
    expect(html).toContain('<h1>Refund &#60;img src=x onerror=alert(1)&#62;\\u{202e}&#34;</h1><p>Is it right?</p>');
    expect(html).toContain(
      '<label>Why?<br><select name="reason" required="required"><option value="broken">broken</option>',
    );
    expect(html).toContain(
      '<input name="amount" type="number" step="1" min="1" max="500" required="required" value="">',
    );
    expect(html).toContain('<small>At most 500</small>');
    expect(html).toContain('<textarea name="note" maxlength="1000"></textarea>');
    expect(html).toContain('<input name="urgent" type="checkbox" value="true">');
    expect(html).toContain('<button type="submit">Pay &#60;back&#62;</button>');
    expect(html).not.toContain('approved');
  });

  it('adds the values to the payload, each of its type; other names do not count', async () => {
    const { run, post } = await open(`{ fields: ${FIELDS} }`);
    const sent = await post({
      reason: 'late',
      amount: '250',
      urgent: 'true',
      note: '',
      approved: 'false',
      __proto__: 'x',
    });
    expect(sent.status).toBe(200);
    expect((await run.result()).output).toEqual({
      answer: { approved: true, reason: 'late', amount: 250, urgent: true },
    });
  });

  it.each(['0x10', '1e1', '0b1', 'Infinity', '1_0', '. '])('takes `%s` as no number', async (amount) => {
    const { post } = await open(`{ fields: ${FIELDS} }`);
    const refused = await post({ reason: 'late', amount });
    expect([refused.status, refused.html]).toEqual([422, expect.stringContaining('<em>must be a')]);
  });

  it('sends nothing when a value does not fit, says why, and keeps what was written', async () => {
    const { orchestrator, run, post } = await open(`{ title: 'Refund', fields: ${FIELDS} }`);
    const wrong = await post({ reason: 'bored', amount: '1000000000', note: '"><script>' });
    expect(wrong.status).toBe(422);
    expect(wrong.html).toContain('value="1000000000"');
    expect(wrong.html).toContain('<em>must be at most 500');
    expect(wrong.html).toContain('&#34;&#62;&#60;script&#62;</textarea>');
    expect(wrong.html).not.toContain('<script>');
    expect((await orchestrator.executions.status(run.id)).status).toBe('waiting');
    expect((await post({ reason: 'broken', amount: '1' })).status).toBe(200);
    expect((await post({ reason: 'late', amount: '2' })).status).toBe(409);
    expect((await run.result()).output).toMatchObject({ answer: { reason: 'broken', amount: 1, urgent: false } });
  });

  it('a form of more than 64 KiB is 413', async () => {
    const { send } = await open(`{ fields: ${FIELDS} }`);
    expect((await send({ method: 'POST', body: new URLSearchParams({ note: 'x'.repeat(70_000) }) })).status).toBe(413);
  });
});

it('the texts of the host are those of every page', async () => {
  const states = { given: { title: 'Danke', text: 'Gespeichert.' }, answered: { title: 'Schon da', text: 'Nichts.' } };
  const { send, post } = await open('null', { texts: { lang: 'de', confirm: 'Bestätigen', states } });
  const shown = await send();
  expect(shown.html).toContain('<html lang="de">');
  expect(shown.html).toContain('<button type="submit">Bestätigen</button>');
  expect((await post({})).html).toContain('<h1>Danke</h1><p>Gespeichert.</p>');
  expect((await post({})).html).toContain('<h1>Schon da</h1>');
});

describe('bad input', () => {
  it.each([
    ["{ titel: 'x' }", '{}', 'unknown key `titel`'],
    ['{ title: 5 }', '{}', '`title` must be text'],
    ["{ fields: { type: 'object' } }", '{}', 'with `type: object` and `properties`'],
    [`{ fields: ${FIELDS} }`, "'yes'", 'a payload that is an object'],
    [`{ fields: ${FIELDS} }`, '{ amount: 1 }', 'field `amount` is a key of the payload'],
    ["{ fields: { type: 'object', properties: { a: { type: 'array' } } } }", '{}', 'field `a` must have an `enum`'],
    [
      "{ fields: { type: 'object', properties: { a: { type: 'string', maxLength: -1 } } } }",
      '{}',
      'not a valid JSON Schema',
    ],
  ])('the page %s with the payload %s fails the agent', async (page, payload, message) => {
    const { run } = await open(page, { payload });
    expect((await run.result()).error).toMatchObject({ agent: 'mail', message: expect.stringContaining(message) });
  });

  it.each([
    [{ lang: '"><script>' }, 'the tag of a language'],
    [{ states: { opened: { title: 'a', text: 'b' } } }, 'did you mean `open`?'],
    [{ states: { open: { title: 'a' } } }, 'must be { title, text }'],
  ])('the texts %j are a TypeError', (texts, message) => {
    expect(() => createOrchestrator({ signalLinks: { ...BASE, texts: texts as never } })).toThrow(message);
  });
});
