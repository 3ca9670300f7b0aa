/** Fields, types and nulls that can't be right are refused when a definition is loaded, each at its place. */

import { expect, it } from 'vitest';
import { compileHost } from '../../src/orchestrator/create-orchestrator.ts';
import { loadEnsembles, loadStoredEnsemble } from '../../src/orchestrator/definitions/load-definitions.ts';
import { problemsOf } from './problems.ts';

/** What follows `flow:` and, if the text has it, `outputs:`; the place; a part of the message; the name that was meant. */
type Case = readonly [rest: string, path: string, message: string, suggestion?: string];

const out = (agent: string, expression: string) => `flow: [ { agent: ${agent} } ]\noutputs: { x: "\${${expression}}" }`;
const after = (agent: string, step: string) => `flow:\n  - agent: ${agent}\n  - ${step}`;
const post = (url: string, body = '{}') =>
  `{ agent: call, operation: api, config: { url: "${url}", method: POST, body: ${body} } }`;

const FIELDS: Readonly<Record<string, Case>> = {
  'api: the id stands in the body': [out('charge', 'charge.output.id'), 'outputs.x', 'no `id` in `charge.output`'],
  'api: status_code': [out('charge', 'charge.output.statusCode'), 'outputs.x', 'no `statusCode`'],
  'api: data of another client': [out('charge', 'charge.output.data.id'), 'outputs.x', 'no `data`'],
  'api: a header is read by its name': [
    out('charge', 'charge.output.header.etag'),
    'outputs.x',
    'no `header`',
    'headers',
  ],
  'a trigger that no execution has': [
    after('charge', '{ switch: "${trigger.type}", cases: { cron: [ { agent: rows } ] } }'),
    'flow[1].cases.cron',
    'this case never runs: `trigger.type`',
  ],
  'the body of a request as a method': [out('charge', "trigger.method == 'post'"), 'outputs.x', 'this is never true'],
  'sql: rows': [out('rows', 'rows.output.rows[0].id'), 'outputs.x', 'no `rows` in `rows.output`'],
  'sql: result': [out('rows', 'rows.output.result[0].id'), 'outputs.x', 'no `result`', 'results'],
  'sql: the output is no list': [out('rows', 'rows.output[0].id'), 'outputs.x', 'no `0`'],
  'sql: a row is read by its number': [
    out('rows', 'rows.output.results.id'),
    'outputs.x',
    '`rows.output.results[0].id`',
  ],
  'sql: a statement counts changes': [out('change', 'change.output.count'), 'outputs.x', 'no `count`'],
  'sql: rowsAffected': [out('change', 'change.output.rowsAffected'), 'outputs.x', 'no `rowsAffected`'],
  'kv: the value itself': [out('cached', 'cached.output.name'), 'outputs.x', 'no `name` in `cached.output`'],
  'kv: val': [out('cached', 'cached.output.val'), 'outputs.x', 'no `val`'],
  'kv: exists': [out('cached', 'cached.output.exists'), 'outputs.x', 'no `exists`'],
  'kv: the names of a list are keys': [out('keys', 'keys.output.names'), 'outputs.x', 'no `names`'],
  'kv: a key is text': [out('keys', 'keys.output.keys[0].name'), 'outputs.x', 'no `name`'],
  'kv: the cursor of the next page': [out('keys', 'keys.output.cursor'), 'outputs.x', 'no `cursor`'],
  'objects: body': [out('file', 'file.output.body'), 'outputs.x', 'no `body`'],
  'objects: rows of CSV': [out('file', 'file.output.content.amount'), 'outputs.x', '`file.output.content[0].amount`'],
  'email: id': [out('mail', 'mail.output.id'), 'outputs.x', 'no `id`'],
  'email: messageID': [out('mail', 'mail.output.messageID'), 'outputs.x', 'no `messageID`', 'messageId'],
  'email: one mail has no list of errors': [out('mail', 'mail.output.errors'), 'outputs.x', 'no `errors`'],
  'email: a batch has ids': [out('mails', 'mails.output.messageId'), 'outputs.x', 'no `messageId`', 'messageIds'],
  'email: an error of a batch has no address': [
    out('mails', 'mails.output.errors[0].address'),
    'outputs.x',
    'no `address`',
  ],
  'sms: sid': [out('text', 'text.output.sid'), 'outputs.x', 'no `sid`'],
  'pdf: url': [out('page', 'page.output.url'), 'outputs.x', 'no `url`'],
  'pdf: pageCount': [out('page', 'page.output.pageCount'), 'outputs.x', 'no `pageCount`'],
  'tools: result': [out('tool', 'tool.output.result'), 'outputs.x', 'no `result`'],
  'think: content': [out('answer', 'answer.output.content'), 'outputs.x', 'no `content`'],
  'think: the tokens stand in usage': [
    out('answer', 'answer.output.inputTokens'),
    'outputs.x',
    '',
    'answer.output.usage.inputTokens',
  ],
  'think: no object without a schema': [out('answer', 'answer.output.object.kind'), 'outputs.x', 'no `object`'],
  'think: the fields stand in the object': [
    out('sort', 'sort.output.kind'),
    'outputs.x',
    '',
    'sort.output.object.kind',
  ],
  'think: a field that the schema lacks': [out('sort', 'sort.output.object.label'), 'outputs.x', 'no `label`'],
  'the result of a step has no field of its output': [out('sort', 'sort.object.kind'), 'outputs.x', ''],
  'an error has a code': [
    'flow:\n  - try: [ { agent: charge } ]\n    catch: [ { agent: run, input: { a: "${error.status}" } } ]',
    'flow[0].catch[0].input.a',
    'no `status`',
  ],
  'the execution has an id': ['flow: [ { agent: run, input: { a: "${execution.key}" } } ]', 'flow[0].input.a', ''],
};

const LEVELS: Readonly<Record<string, Case>> = {
  'foreach: over what is no list': [
    'flow: [ { foreach: "${input.id}", steps: [ { agent: run } ] } ]',
    'flow[0].foreach',
    'must be a list',
  ],
  'foreach: over the whole output of a query': [
    after('rows', '{ foreach: "${rows.output}", steps: [ { agent: run } ] }'),
    'flow[1].foreach',
    'must be a list, and this is an object',
  ],
  'foreach: a field of an item': [
    after('keys', '{ foreach: "${keys.output.keys}", steps: [ { agent: run, input: { a: "${item.key}" } } ] }'),
    'flow[1].steps[0].input.a',
    'no `key`',
  ],
  'foreach: the output of its items is a list': [
    'flow: [ { foreach: "${input.items}", name: all, steps: [ { agent: charge } ] } ]\noutputs: { x: "${all.output.status}" }',
    'outputs.x',
    '`all.output[0].status`',
  ],
  'foreach: an element has the shape of the last agent': [
    'flow: [ { foreach: "${input.items}", name: all, steps: [ { agent: charge } ] } ]\noutputs: { x: "${all.output[0].id}" }',
    'outputs.x',
    'no `id`',
  ],
  'parallel: a branch is named by its agent': [
    'flow: [ { parallel: [ { agent: charge }, { agent: mail } ], name: both } ]\noutputs: { x: "${both.output.charg.status}" }',
    'outputs.x',
    'no `charg`',
    'charge',
  ],
  'parallel: a field of a branch': [
    'flow: [ { parallel: [ { agent: charge }, { agent: mail } ], name: both } ]\noutputs: { x: "${both.output.mail.id}" }',
    'outputs.x',
    'no `id`',
  ],
  'parallel: the winner of a race': [
    'flow: [ { parallel: [ { agent: charge }, { agent: mail } ], waitFor: first, name: race } ]\noutputs: { x: "${race.output.charge}" }',
    'outputs.x',
    'no `charge`',
  ],
  'while: a field of the round before': [
    'flow: [ { while: "${charge.output.state != 1}", maxIterations: 3, steps: [ { agent: charge } ] } ]',
    'flow[0].while',
    'no `state`',
  ],
  'a branch of an if': [
    'flow: [ { if: "${input.count > 1}", then: [ { agent: rows } ], else: [ { agent: run, input: { a: "${input.id.text}" } } ] } ]',
    'flow[0].else[0].input.a',
    'no `text`',
  ],
  'a route': [
    'flow: [ { agent: pick, routes: [ { member: mail, default: true } ] }, { agent: run, input: { a: "${pick.output.result}" } } ]',
    'flow[1].input.a',
    'no `result`',
  ],
};

const OPERATORS: Readonly<Record<string, Case>> = {
  'a product of text': [out('run', 'input.id * 2'), 'outputs.x', '* needs two numbers'],
  'a difference of a list': [out('rows', 'rows.output.results - 1'), 'outputs.x', '- needs two numbers'],
  'a comparison of text and a number': [
    'flow: [ { if: "${input.id > 5}", then: [ { agent: run } ] } ]',
    'flow[0].if',
    'always false',
  ],
  'upper() of a list': [out('rows', 'upper(rows.output.results)'), 'outputs.x', 'upper() takes text'],
  'keys() of a list': [out('rows', 'keys(rows.output.results)'), 'outputs.x', 'keys() takes an object'],
  'sum() of text': [out('run', 'sum(input.id)'), 'outputs.x', 'sum() takes'],
  'a key that is an object': [out('rows', 'rows.output[rows]'), 'outputs.x', 'a key must be text'],
  'a status that fails the step': [
    after('charge', '{ if: "${charge.output.status == 404}", then: [ { agent: run } ] }'),
    'flow[1].if',
    'never',
  ],
  'text beside an enum': [
    'flow: [ { if: "${input.kind == \'cards\'}", then: [ { agent: run } ] } ]',
    'flow[0].if',
    'never true',
    'card',
  ],
  'a switch: a case that the enum lacks': [
    'flow: [ { switch: "${input.kind}", cases: { cash: [ { agent: run } ], crad: [] } } ]',
    'flow[0].cases.crad',
    'never runs',
    'card',
  ],
  'a switch: a case that the schema of a model lacks': [
    after('sort', '{ switch: "${sort.output.object.kind}", cases: { complaint: [ { agent: run } ] } }'),
    'flow[1].cases.complaint',
    'never runs',
  ],
  'a config key of another type': [
    'flow: [ { agent: a, operation: storage, config: { type: kv, action: list, limit: "${input.id}" } } ]',
    'flow[0].config.limit',
    'must be a number',
  ],
  'a duration that is a list': [
    after('rows', '{ sleep: "${rows.output.results}" }'),
    'flow[1].sleep',
    'must be a duration',
  ],
};

const CHILD = `name: refund
inputs: { order: { type: string, required: true }, cents: { type: integer, required: true } }
flow: [ { agent: x, operation: code, config: { script: run } } ]
outputs: { state: "\${input.order}" }`;

const NULLS: Readonly<Record<string, Case>> = {
  'an optional input in the path of a URL': [
    `flow: [ ${post('https://x.example/c/${input.note}')} ]`,
    'flow[0].config.url',
    'input `note` is not `required`',
  ],
  'an element that may not be there': [
    after('rows', post('https://x.example/c/${rows.output.results[0].id}')),
    'flow[1].config.url',
    'may be null',
  ],
  'a step that may be skipped, in a body': [
    `flow:\n  - { agent: charge, condition: "\${input.count > 1}" }\n  - ${post('https://x.example/c', '{ a: "${charge.output.body}" }')}`,
    'flow[1].config.body.a',
    '`charge` may be skipped',
  ],
  'the receiver of a mail': [
    'flow: [ { agent: m, operation: email, config: { from: s@x.example, to: "${input.note}", subject: s, body: b } } ]',
    'flow[0].config.to',
    'a mail needs a receiver',
  ],
  'the receiver of a message': [
    'flow: [ { agent: m, operation: sms, config: { to: "${input.note}", body: b } } ]',
    'flow[0].config.to',
    'receiver',
  ],
  'a key': [
    'flow: [ { agent: k, operation: storage, config: { type: kv, action: get, key: "c/${input.note}" } } ]',
    'flow[0].config.key',
    'another key',
  ],
  'a WHERE of a DELETE': [
    'flow: [ { agent: d, operation: storage, config: { type: sql, action: execute, query: "DELETE FROM t WHERE id = ${input.note}" } } ]',
    'flow[0].config.query',
    'other rows',
  ],
  'a parameter of a WHERE': [
    'flow: [ { agent: d, operation: storage, config: { type: sql, action: execute, query: "UPDATE t SET a = ? WHERE id = ?", params: [ "${input.note}", "${input.note}" ] } } ]',
    'flow[0].config.params[1]',
    'other rows',
  ],
  'a row that may be missing, in an INSERT': [
    after(
      'rows',
      '{ agent: d, operation: storage, config: { type: sql, action: execute, query: "INSERT INTO t VALUES (${rows.output.results[0].id})" } }',
    ),
    'flow[1].config.query',
    'writes null',
  ],
};

const LISTS: Readonly<Record<string, Case>> = {
  'a field of an element': [
    out('keys', 'map(mails.output.errors, x => x.adress)').replace('agent: keys', 'agent: mails'),
    'outputs.x',
    'no `adress` in `x`',
  ],
  'a field after map': [
    'flow: []\noutputs: { x: "${map(entries({ a: input.id }), e => { name: e.key })[0].nam}" }',
    'outputs.x',
    'no `nam`',
    'name',
  ],
  'an entry has a key and a value': [
    'flow: []\noutputs: { x: "${map(entries({ a: input.id }), e => e.name)}" }',
    'outputs.x',
    'no `name` in `e`, which has `key` and `value`',
  ],
  'what is found may be null': [
    'flow:\n  - { agent: call, operation: api, config: { url: "https://x.example/${find(input.items, x => x.ok).id}" } }',
    'flow[0].config.url',
    'no element may be found',
  ],
  'a list of texts has no sum': [
    'flow: []\noutputs: { x: "${sumBy(keys({ a: input.id }), x => x)}" }',
    'outputs.x',
    'the arrow of sumBy() gives a number, and this is text',
  ],
  'a list function over text': ['flow: []\noutputs: { x: "${map(input.id, x => x)}" }', 'outputs.x', 'takes a list'],
  'an element that is never equal': [
    'flow: []\noutputs: { x: "${filter(map(range(3), x => input.kind), k => k == \'cheque\')}" }',
    'outputs.x',
    "never 'cheque'",
  ],
  'a field that pick() does not find': [
    'flow: []\noutputs: { x: "${pick(input, \'idd\')}" }',
    'outputs.x',
    'no `idd` in it',
    'id',
  ],
};

const CHILDREN: Readonly<Record<string, Case>> = {
  'an input of another type': [
    'flow: [ { ensemble: refund, input: { order: "${input.id}", cents: "${input.id}" } } ]',
    'flow[0].input.cents',
    'is a number',
  ],
  'an input that is missing': [
    'flow: [ { ensemble: refund, input: { order: "${input.id}" } } ]',
    'flow[0].input',
    'requires the input `cents`',
  ],
  'an input with another name': [
    'flow: [ { ensemble: refund, input: { order: "${input.id}", cent: 1 } } ]',
    'flow[0].input.cent',
    'requires the input `cents`',
    'cents',
  ],
  'an output that it does not have': [
    'flow: [ { ensemble: refund, input: { order: o, cents: 1 } } ]\noutputs: { x: "${refund.output.status}" }',
    'outputs.x',
    'no `status`',
  ],
};

function expectRefused([rest, path, message, suggestion]: Case, others: readonly string[] = []): void {
  const [problem, ...more] = problemsOf(rest, others);
  expect(more).toEqual([]);
  expect(problem?.path).toBe(path);
  expect(problem?.message).toContain(message);
  if (suggestion !== undefined) expect(problem?.suggestion).toBe(suggestion);
}

it.each(Object.entries({ ...FIELDS, ...LEVELS, ...LISTS }))('a wrong field is refused: %s', (_title, wrong) =>
  expectRefused(wrong),
);
it.each(Object.entries(OPERATORS))('what can never be right is refused: %s', (_title, wrong) => expectRefused(wrong));
it.each(Object.entries(NULLS))('what may be null is refused where null does harm: %s', (_title, wrong) =>
  expectRefused(wrong),
);
it.each(Object.entries(CHILDREN))('a child: %s', (_title, wrong) => expectRefused(wrong, [CHILD]));

it('a definition that was stored by an earlier version is warned about, and not refused', () => {
  const definition = {
    name: 'stored',
    flow: [{ agent: 'charge', operation: 'api', config: { url: 'https://bank.example' } }],
    outputs: { id: '${charge.output.id}' },
  };
  const host = compileHost({ ensembles: [] } as never);
  expect(loadStoredEnsemble(definition as never, host).warnings).toMatchObject([{ path: 'outputs.id' }]);
  expect(() => loadEnsembles([definition as never], host)).toThrow('no `id` in `charge.output`');
});
