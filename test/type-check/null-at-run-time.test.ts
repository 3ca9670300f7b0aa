/** Null that nobody could know of when the definition was loaded is refused where it would do harm: nothing is sent, and the error says what was null and why. */

import { expect, it } from 'vitest';
import { createTestOrchestrator, memoryMail, memorySms, stubHttp } from '../../src/entries/testing.ts';

const give = { list: [], x: null, name: 'Ada' };
const api = (url: string) => `{ agent: b, operation: api, config: { url: "${url}" } }`;
const mail = (to: string) =>
  `{ agent: b, operation: email, config: { from: s@x.example, subject: s, body: b, to: ${to} } }`;
const get = (key: string) => `{ agent: b, operation: storage, config: { type: kv, action: get, key: "${key}" } }`;

async function run(step: string, input: object = {}) {
  const sent = memoryMail();
  const http = stubHttp({ 'GET https://x.example/': { status: 200, json: {} } });
  const orchestrator = createTestOrchestrator({
    ensembles: [
      `name: e\nflow:\n  - { agent: a, operation: code, config: { script: give } }\n  - { agent: late, operation: code, condition: "\${input.late}", config: { script: give } }\n  - ${step}\n`,
    ],
    scripts: { give: () => give },
    mail: { mail: sent },
    sms: { sms: memorySms() },
    http,
  });
  const result = await orchestrator.execute('e', input);
  return { ...result, sent: sent.messages.length + http.calls.length };
}

it.each([
  [
    'the path of a url, of an empty list',
    api('https://x.example/${a.output.list[0].id}/y'),
    '`a.output.list[0].id` is null, because `a.output.list` is an empty list: then the path of the url lacks a part',
  ],
  ['the path of a url, of a field', api('https://x.example/${a.output.x}'), '`a.output.x` is null: then the path'],
  ['the path of a url, of a field of null', api('https://x.example/${a.output.x.y}'), 'because `a.output.x` is null:'],
  [
    'the path of a url, of an input',
    api('https://x.example/${input.id}'),
    '`input.id` is null, because the input has no `id`',
  ],
  [
    'an expression around it',
    api('https://x.example/${urlEncode(a.output.x)}'),
    '`urlEncode(a.output.x)` is null: then the path of the url lacks a part',
  ],
  ['the receiver of a mail', mail('"${a.output.x}"'), '`a.output.x` is null: a mail needs a receiver'],
  ['one of several receivers', mail('[a@x.example, "${a.output.x}"]'), 'a mail needs a receiver'],
  [
    'the receiver of an SMS',
    '{ agent: b, operation: sms, config: { to: "${a.output.x}", body: b } }',
    'a message needs',
  ],
  ['the key of a store', get('k/${a.output.x}'), '`a.output.x` is null: then another key is meant'],
])('%s', async (_where, step, message) => {
  const { error, sent } = await run(step);
  expect(error).toMatchObject({ code: 'INVALID_INPUT', agent: 'b' });
  expect(error?.message).toContain(message);
  expect(sent).toBe(0);
});

it.each([
  ['what comes after the path', api('https://x.example/?a=${a.output.x}')],
  ['an expression that says what then', get("k/${a.output.x ?? 'none'}")],
  ['a value that is there', get('k/${a.output.name}')],
])('accepted: %s', async (_where, step) => {
  const { error } = await run(step);
  expect(error?.code).not.toBe('INVALID_INPUT');
});
