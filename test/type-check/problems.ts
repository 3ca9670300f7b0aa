/** Loads definitions, and says what is refused of them. */

import { createTestOrchestrator, fakeModel, memoryMail, memorySms, stubPdf } from '../../src/entries/testing.ts';
import { type DefinitionIssue, isOrchestratorError } from '../../src/index.ts';

const HEAD = `name: e
inputs:
  id: { type: string, required: true }
  note: { type: string }
  count: { type: integer, required: true }
  kind: { type: string, required: true, enum: [card, cash] }
  items: { type: array, required: true }
`;

/** Agents of all operations, in `agents`, for flows that run some of them. */
const AGENTS = `agents:
  - { name: charge, operation: api, config: { url: 'https://bank.example/charges', method: POST } }
  - { name: rows, operation: storage, config: { type: sql, query: 'SELECT id FROM orders' } }
  - { name: change, operation: storage, config: { type: sql, action: execute, query: 'DELETE FROM orders' } }
  - { name: cached, operation: storage, config: { type: kv, action: get, key: k } }
  - { name: keys, operation: storage, config: { type: kv, action: list } }
  - { name: file, operation: storage, config: { type: objects, action: get, key: f, format: csv } }
  - { name: mail, operation: email, config: { from: s@x.example, to: a@x.example, subject: s, body: b } }
  - { name: mails, operation: email, config: { from: s@x.example, subject: s, body: b, batch: { recipients: [ { email: a@x.example } ] } } }
  - { name: text, operation: sms, config: { to: '+15550100', body: b } }
  - { name: page, operation: pdf, config: { html: '<p>x</p>' } }
  - { name: tool, operation: tools, config: { mcp: crm, tool: find } }
  - { name: answer, operation: think, config: { model: m, prompt: p } }
  - name: sort
    operation: think
    config:
      model: m
      prompt: p
      schema: { type: object, properties: { kind: { enum: [refund, question] }, score: { type: number } }, required: [kind, score] }
  - { name: run, operation: code, config: { script: run } }
`;

const never = (): never => {
  throw new Error('nothing runs here');
};

/** @param rest - `flow` and `outputs`, as YAML. Agents of the list that no step runs are left out */
export function problemsOf(rest: string, others: readonly string[] = []): readonly DefinitionIssue[] {
  const used = AGENTS.split(/\n(?= {2}- )/).filter(
    (agent, i) => i === 0 || new RegExp(`(?:agent|member): ${nameOf(agent)}\\b`).test(rest),
  );
  const agents = used.length > 1 ? `${used.join('\n')}\n` : '';
  try {
    createTestOrchestrator({
      ensembles: [`${HEAD}${agents}${rest}`, ...others],
      scripts: { run: () => null },
      env: { REGION: 'eu' },
      mail: { mail: memoryMail() },
      sms: { sms: memorySms() },
      pdf: stubPdf(),
      bindings: { sql: { kind: 'sql', query: never, execute: never } as never },
      mcpServers: { crm: { url: 'https://crm.example' } },
      models: { m: fakeModel([]) },
    });
    return [];
  } catch (error) {
    if (isOrchestratorError(error, 'INVALID_DEFINITION')) return error.details.issues;
    throw error;
  }
}

function nameOf(agent: string): string | undefined {
  return /name: (\w+)/.exec(agent)?.[1];
}
