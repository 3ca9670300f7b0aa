/** Definitions that are right are accepted, whatever the check of types could have against them. */

import { expect, it } from 'vitest';
import { problemsOf } from './problems.ts';

const out = (agent: string, expression: string) => `flow: [ { agent: ${agent} } ]\noutputs: { x: "\${${expression}}" }`;
const after = (agent: string, step: string) => `flow:\n  - agent: ${agent}\n  - ${step}`;
const post = (url: string, body = '{}') =>
  `{ agent: call, operation: api, config: { url: "${url}", method: POST, body: ${body} } }`;
const SKIPPED = 'flow:\n  - { agent: charge, condition: "${input.count > 1}" }\n  - ';

const READS: Readonly<Record<string, string>> = {
  'what a condition before it has ruled out': out('charge', "input.kind == 'card' ? 1 : input.kind != 'card' ? 2 : 3"),
  'a field of each element': out('mails', 'map(mails.output.errors, x => x.index + 1)'),
  'an element that is known not to be null':
    'flow: []\noutputs: { x: "${map(filter(input.items, x => x != null), x => x.id)}" }',
  'what is found, with a default':
    'flow:\n  - { agent: call, operation: api, config: { url: "https://x.example/${find(input.items, x => x.ok).id ?? \'none\'}" } }',
  'a list that has an element for which something holds':
    'flow:\n  - { agent: call, operation: api, condition: "${some(input.items, x => x.ok)}", config: { url: "https://x.example/${input.items[0].id}" } }',
  'the name of a step in an arrow': out('charge', 'map([1], charge => charge + 1)'),
  'a group': 'flow: []\noutputs: { x: "${groupBy(input.items, x => x.kind).card[0].id}" }',
  'the status of a call': out('charge', 'charge.output.status'),
  'anything of a body': out('charge', 'charge.output.body.data[0].id'),
  'a request, in the url of a call': after(
    'charge',
    post(
      'https://x.example/${trigger.body.id}/${trigger.path}',
      '{ page: "${trigger.query.page ?? 1}", raw: "${lower(trigger.rawBody)}" }',
    ),
  ),
  'when a schedule was due': out('charge', "trigger.type == 'schedule' ? trigger.scheduledAt + 1000 : now()"),
  'the whole trigger': out('charge', 'trigger'),
  'a header': out('charge', "charge.output.headers['x-request-id']"),
  'any column of a row': out('rows', 'rows.output.results[0].customer.name'),
  'the next page': out('rows', 'rows.output.nextCursor'),
  'the number of changes': out('change', 'change.output.changes > 0'),
  'a field of a stored value': out('cached', 'cached.output.value.name'),
  'whether a value was found': out('cached', 'cached.output.found'),
  'a key of a list': out('keys', 'upper(keys.output.keys[0])'),
  'a column of a CSV': out('file', 'file.output.content[0].amount'),
  'the id of a mail': out('mail', 'mail.output.messageId'),
  'the failures of a batch': out('mails', 'mails.output.errors[0].message'),
  'the result of a tool': out('tool', 'tool.output.content[0].text'),
  'the tokens of a model': out('answer', 'answer.output.usage.inputTokens + answer.output.usage.outputTokens'),
  'the cost, which not every model has': out('answer', 'answer.output.usage.cost * 100'),
  'the object of a model': out('sort', 'sort.output.object.kind'),
  'the result of a script': out('run', 'run.output.a.b.c'),
  'the result of a step': out('run', 'run'),
  'the message of an error': out('run', 'run.error.message'),
  'an optional input in an output': out('run', 'input.note'),
  'a field of the environment in brackets': out('run', "env['REGION']"),
  'a key that is computed': out('rows', 'rows.output[input.id]'),
  'the length of a text': out('run', 'input.id.length'),
  'a character': out('run', 'input.id[0]'),
  'text beside a number': out('run', "'n' + input.count"),
  'a number from text': out('run', 'number(input.id) + 1'),
  'a comparison with null of what is never null': out('run', 'input.id == null'),
  'two values that are written down': out('run', "'a' == 'b'"),
  'a status that expect allows': `flow:
  - { agent: find, operation: api, config: { url: 'https://x.example/c', expect: [2xx, 404] } }
  - { if: "\${find.output.status == 404}", then: [ { agent: run } ] }`,
  'a config that is filled in at run time':
    'flow: [ { agent: own, operation: code, config: { script: run, a: "${input.note}" } } ]',
  'a switch with a default': 'flow: [ { switch: "${input.kind}", cases: { cash: [ { agent: run } ] }, default: [] } ]',
  'a switch over text': 'flow: [ { switch: "${input.id}", cases: { a: [ { agent: run } ], b: [] } } ]',
  'a switch over a number': 'flow: [ { switch: "${input.count}", cases: { 1: [ { agent: run } ], 2: [] } } ]',
  'a race':
    'flow: [ { parallel: [ { agent: charge }, { agent: mail } ], waitFor: first, name: race } ]\noutputs: { x: "${race.output.winner}" }',
  'an item of any kind':
    'flow: [ { foreach: "${input.items}", as: one, steps: [ { agent: run, input: { a: "${one.a.b}", i: "${index}" } } ] } ]',
  'a foreach over a list that is written down':
    'flow: [ { foreach: [ { to: a }, { to: b } ], steps: [ { agent: run, input: { a: "${item.to}" } } ] } ]',
  'the last of a loop':
    'flow: [ { foreach: "${input.items}", name: all, steps: [ { agent: charge } ] } ]\noutputs: { x: "${last(all.output).status}" }',
  'a poll': `flow:
  - while: "\${charge.output.body.state != 'done'}"
    maxIterations: 5
    steps: [ { agent: charge } ]
outputs: { x: "\${charge.output.body.result}" }`,
  'what a loop waits for, after the step has run again': `flow:
  - while: "\${sort.output.object.kind != 'refund'}"
    maxIterations: 3
    steps:
      - agent: sort
      - { switch: "\${sort.output.object.kind}", cases: { refund: [ { agent: run } ] } }`,
  'what a loop waits for, in a block inside': `flow:
  - while: "\${sort.output.object.kind != 'refund'}"
    maxIterations: 3
    steps:
      - { if: "\${input.count > 1}", then: [ { agent: sort } ] }
      - { parallel: [ { agent: charge } ] }
      - { switch: "\${sort.output.object.kind}", cases: { refund: [ { agent: run } ] } }`,
  'the error of a try':
    'flow:\n  - try: [ { agent: charge } ]\n    catch: [ { agent: run, input: { a: "${error.code}", b: "${error.details.status}" } } ]',
  'a signal': 'flow: [ { wait: approved, name: approval } ]\noutputs: { x: "${approval.output.by}" }',
};

const NULLS: Readonly<Record<string, string>> = {
  'a required input in a URL': `flow: [ ${post('https://x.example/c/${input.id}')} ]`,
  'an optional input in the query of a URL': `flow: [ ${post('https://x.example/c?n=${input.note}')} ]`,
  'an optional input in a body': `flow: [ ${post('https://x.example/c', '{ a: "${input.note}" }')} ]`,
  'a body that is null by its author': `flow: [ ${post('https://x.example/c', '{ a: null, b: "${null}" }')} ]`,
  'what then, by ??': `flow: [ ${post("https://x.example/c/${input.note ?? 'none'}")} ]`,
  'what then, by default()': `flow: [ ${post("https://x.example/c/${default(input.note, 'none')}")} ]`,
  'what then, by required()': `flow: [ ${post("https://x.example/c/${required(input.note, 'no note')}")} ]`,
  'what then, by ?:': `flow: [ ${post("https://x.example/c/${input.note != null ? input.note : 'x'}")} ]`,
  'a condition of the step': `flow: [ ${post('https://x.example/c/${input.note}').replace('operation: api', 'operation: api, condition: "${input.note}"')} ]`,
  'an if': `flow: [ { if: "\${input.note != null}", then: [ ${post('https://x.example/c/${input.note}')} ] } ]`,
  'the else of an if': `flow: [ { if: "\${!input.note}", then: [ { agent: run } ], else: [ ${post('https://x.example/c/${input.note}')} ] } ]`,
  'a switch': `flow: [ { switch: "\${input.note}", cases: { a: [ ${post('https://x.example/c/${input.note}')} ] } } ]`,
  'required() in the step before': `flow:\n  - { agent: run, input: { a: "\${required(input.note, 'no note')}" } }\n  - ${post('https://x.example/c/${input.note}')}`,
  'a count in a condition': after(
    'rows',
    `{ if: "\${rows.output.count > 0}", then: [ ${post('https://x.example/c/${rows.output.results[0].id}')} ] }`,
  ),
  'a count that is 1': after(
    'rows',
    `{ if: "\${rows.output.count == 1}", then: [ ${post('https://x.example/c/${rows.output.results[0].id}')} ] }`,
  ),
  'the length of a list': after(
    'rows',
    `{ if: "\${length(rows.output.results) >= 1}", then: [ ${post('https://x.example/c/${first(rows.output.results).id}')} ] }`,
  ),
  'a value that was found': after('cached', post('https://x.example/c/${cached.output.value}')),
  'the same condition twice': `${SKIPPED}{ agent: call, operation: api, condition: "\${input.count > 1}", config: { url: "https://x.example/c/\${charge.output.body.id}" } }`,
  executed: `${SKIPPED}{ if: "\${charge.executed}", then: [ ${post('https://x.example/c/${charge.output.body.id}')} ] }`,
  'the output itself': `${SKIPPED}{ if: "\${charge.output.body.id != null}", then: [ ${post('https://x.example/c/${charge.output.body.id}')} ] }`,
  'a step that may be skipped, in an output': `${SKIPPED}{ agent: run }\noutputs: { x: "\${charge.output.body}" }`,
  'a step that may have failed, with what then': `flow:\n  - { agent: charge, continueOnError: true }\n  - ${post("https://x.example/c/${charge.output.body.id ?? 'none'}")}`,
  'an item of a list of keys': after(
    'keys',
    `{ foreach: "\${keys.output.keys}", steps: [ ${post('https://x.example/c/${item}')} ] }`,
  ),
  'a WHERE of a SELECT':
    'flow: [ { agent: q, operation: storage, config: { type: sql, query: "SELECT 1 FROM t WHERE a = ${input.note}" } } ]',
  'an optional column':
    'flow: [ { agent: q, operation: storage, config: { type: sql, action: execute, query: "UPDATE t SET a = ${input.note} WHERE id = ${input.id}" } } ]',
  'a statement that says what null means':
    'flow: [ { agent: q, operation: storage, config: { type: sql, action: execute, query: "DELETE FROM t WHERE a = ${input.note} OR (${input.note} IS NULL AND a IS NULL)" } } ]',
  'an optional parameter of an INSERT':
    'flow: [ { agent: q, operation: storage, config: { type: sql, action: execute, query: "INSERT INTO t VALUES (:id, :note)", params: { id: "${input.id}", note: "${input.note}" } } } ]',
  'a timeout of a wait, with what then':
    'flow: [ { wait: go, name: w, timeout: 1h, onTimeout: continue }, { agent: run, input: { a: "${w.output.by ?? \'nobody\'}" } } ]',
};

it.each(Object.entries(READS))('%s is read', (_title, rest) => expect(problemsOf(rest)).toEqual([]));
it.each(Object.entries(NULLS))('null is thought of: %s', (_title, rest) => expect(problemsOf(rest)).toEqual([]));
