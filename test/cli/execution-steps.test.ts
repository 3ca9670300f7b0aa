/** `ensemble execution show --steps` and `watch`: steps of every kind, from a store and from a running server. */

import { beforeAll, expect, it } from 'vitest';
import { ensureBuilt } from './cli-process.ts';
import { ensemble } from './in-process.ts';
import { GREET, makeProject, serveProject } from './served-project.ts';

beforeAll(ensureBuilt, 60_000);

const MIXED = `name: mixed
flow:
  - agent: charge
    operation: code
    config: { script: charge }
    retry: { maxAttempts: 2, backoff: fixed, delay: 1 }
  - if: "\${charge.output == 'paid'}"
    then: [{ sleep: 15, name: pause }]
  - agent: refund
    operation: code
    config: { script: charge }
    condition: "\${charge.failed}"
  - ensemble: greet
    input: { who: Ada }
`;
const PROJECT = {
  ...GREET,
  'ensembles/mixed.yaml': MIXED,
  'scripts/charge.mjs':
    "export default ({ execution }) => { if (execution.attempt === 1) throw new Error('busy'); return 'paid'; };\n",
};

it('shows each step in a line, and watch reports them, from the store and from the server alike', async () => {
  const served = await serveProject(makeProject(PROJECT));
  const body = (await (await served.api('/execute/ensemble/mixed', { input: {} })).json()) as { executionId: string };
  const { executionId: id } = body;
  for (const [where, options] of [
    [[], { cwd: served.cwd }],
    [['--url', served.url, '--token', served.token], {}],
  ] as const) {
    const { code, stdout } = await ensemble(['execution', 'show', id, '--steps', ...where], options);
    const lines = stdout.split('\n');
    const at = lines.indexOf('steps');
    expect([
      code,
      lines.slice(at + 1, at + 6).map((line) =>
        line
          .replace(/\d+ms|\{.*\}|\s+/g, ' ')
          .trim()
          .replace(/exec_\w{26}/, 'ID')
          .replace(/ +/g, ' '),
      ),
    ]).toEqual([
      0,
      [
        '✓ flow[0] agent charge 2 attempts',
        '✓ flow[1] if',
        '✓ flow[1].then[0] sleep pause',
        '- flow[2] agent refund skipped',
        '✓ flow[3] ensemble greet ID',
      ],
    ]);
    const json = JSON.parse((await ensemble(['execution', 'show', id, '--steps', '--json', ...where], options)).stdout);
    expect([json.id, json.steps.map(({ kind }: { kind: string }) => kind)]).toEqual([
      id,
      ['agent', 'if', 'sleep', 'agent', 'ensemble'],
    ]);
    const watched = await ensemble(['execution', 'watch', id, ...where], options);
    const said = watched.stderr.split('\n').map((line) =>
      line
        .trim()
        .replace(/ +/g, ' ')
        .replace(/\d\.\ds|[1-9]\d*ms/g, 'T')
        .replace(/exec_\w+/, 'ID'),
    );
    expect([watched.code, said.slice(1, -2)]).toEqual([
      0,
      [
        'charge attempt 1 failed, retried: busy',
        'charge completed in T, 2 attempts',
        'sleep waited T',
        'sleep is over',
        'refund skipped',
        'greet started as ID',
        'greet completed as ID',
      ],
    ]);
  }
});
