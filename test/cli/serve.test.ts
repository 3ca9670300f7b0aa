/** `ensemble serve`: a project as a service, from its first token to its graceful stop. */

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { withFile } from '../storage/sqlite-files.ts';
import { ensemble, ensureBuilt, makeFolder } from './cli-process.ts';
import { GATED, GREET, listen, makeProject, readCurlLine, serveProject, startGate, until } from './served-project.ts';

beforeAll(ensureBuilt, 60_000);

describe('ensemble serve starts', () => {
  it('prints its address, a first admin token, and a curl command that works with the token in a variable', async () => {
    const { printed, token, url } = await serveProject(makeProject());
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    expect(token).toMatch(/^sk-service-[0-9A-Za-z]{42}$/);
    const line = readCurlLine(printed, token);
    const response = await fetch(line.url, line.init);
    expect([response.status, await response.json()]).toMatchObject([
      200,
      { status: 'completed', output: { text: 'Hello text' } },
    ]);
    // The token is not part of the command: a command that is pasted into a shell stays in its history.
    expect(printed.split('\n').filter((one) => one.includes(token))).toEqual([`  ${token}`]);
  });

  it('serves the dashboard with --dashboard, prints its address, and has none without', async () => {
    const { printed, url } = await serveProject(makeProject(), ['--dashboard']);
    expect(printed).toContain(`  dashboard  ${url}/dashboard/\n`);
    const page = await fetch(`${url}/dashboard/`);
    expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
    expect((await fetch(`${url}/dashboard/api/v1/caller`)).status).toBe(401);
    const plain = await serveProject(makeProject());
    expect((await fetch(`${plain.url}/dashboard/`)).status).toBe(404);
  });

  it('prints each schedule that it serves, with its pattern, its zone and its next instant', async () => {
    const flow = 'flow: []\n';
    const report = "name: report\ntrigger: [{ type: schedule, cron: '0 3 29 2 *', timezone: Europe/Berlin }]\n";
    const tick =
      "name: tick\ntrigger:\n  - { type: schedule, cron: '30  */2 * * *' }\n  - { type: schedule, cron: '@yearly' }\n";
    const files = { ...GREET, 'ensembles/report.yaml': report + flow, 'ensembles/tick.yaml': tick + flow };
    const { printed } = await serveProject(makeProject(files));
    const lines = printed.split('\n').slice(2, 6);
    expect(lines[0]).toMatch(
      /^ {2}schedules {2}report {2}0 3 29 2 \* {4}Europe\/Berlin {2}next at 20\d\d-02-29T02:00:00Z, in \d+[yd]$/,
    );
    expect(lines[1]).toMatch(
      /^ {13}tick {4}30 \*\/2 \* \* \* {2}UTC {12}next at 20\d\d-\d\d-\d\dT\d[02468]:30:00Z, in \d+[hms]$/,
    );
    expect(lines[2]).toMatch(/^ {13}tick {4}@yearly {7}UTC {12}next at 20\d\d-01-01T00:00:00Z, in \d+[yd]$/);
    expect(lines[3]).toMatch(/^ {2}store {6}/);
    const config = { 'ensemble.config.mjs': 'export default { schedules: false };\n' };
    const other = await serveProject(makeProject({ ...files, ...config }));
    expect(other.printed).toContain('  schedules  none are served: the config says `schedules: false`\n  store');
  });

  it('its first token has the scope admin and the plan enterprise, and is created only once', async () => {
    const cwd = makeProject();
    const first = await serveProject(cwd);
    const { tokens } = (await (await first.api('/tokens')).json()) as { tokens: object[] };
    expect(tokens).toMatchObject([{ name: 'admin', scopes: ['admin'], plan: 'enterprise' }]);
    first.child.kill('SIGTERM');
    await first.ended;
    const second = await serveProject(cwd);
    expect([second.token, second.printed.includes('sk-service-')]).toEqual(['', false]);
    expect(second.printed).toContain('  tokens     1; create another with: ensemble token create');
    expect((await second.api('/tokens', undefined, first.token)).status).toBe(200);
  });

  it('stores its data in a folder that git ignores, and finds it again', async () => {
    const cwd = makeProject();
    const first = await serveProject(cwd);
    const ran = (await (await first.api('/execute/ensemble/greet', { input: { who: 'Ada' } })).json()) as {
      executionId: string;
    };
    first.child.kill('SIGTERM');
    await first.ended;
    expect(readFileSync(join(cwd, '.ensemble/.gitignore'), 'utf8')).toBe('*\n');
    const second = await serveProject(cwd);
    const record = await second.api(`/executions/${ran.executionId}`, undefined, first.token);
    expect(await record.json()).toMatchObject({ id: ran.executionId, output: { text: 'Hello Ada' } });
  });

  it('--storage memory writes no file, --storage sqlite:FILE uses that file', async () => {
    const cwd = makeProject();
    const before = readdirSync(cwd);
    const memory = await serveProject(cwd, ['--storage', 'memory']);
    expect(memory.printed).toContain('  store      memory; its content ends with this process\n');
    memory.child.kill('SIGTERM');
    await memory.ended;
    expect(readdirSync(cwd)).toEqual(before);
    await serveProject(cwd, ['--storage', 'sqlite:shop.db']);
    expect([existsSync(join(cwd, 'shop.db')), existsSync(join(cwd, '.ensemble'))]).toEqual([true, false]);
  });

  it("the config's storage is used when no option names one, and tokens begin with its brand", async () => {
    const cwd = makeProject({
      ...GREET,
      'ensemble.config.mjs': `import { sqliteStorage } from 'ensemble-orchestrator/sqlite';
export default { brand: 'acme', storage: sqliteStorage({ path: new URL('own.db', import.meta.url).pathname }) };\n`,
    });
    const served = await serveProject(cwd);
    expect(served.token).toMatch(/^sk-acme-/);
    expect(served.printed).toContain('  store      as in the config\n');
    expect([existsSync(join(cwd, 'own.db')), existsSync(join(cwd, '.ensemble'))]).toEqual([true, false]);
    const made = await ensemble(['token', 'create', '--name', 'ci', '--scope', 'read:ensembles'], { cwd });
    expect(made.stdout).toMatch(/^sk-acme-\w{42}\n$/);
    expect((await served.api('/ensembles', undefined, made.stdout.trim())).status).toBe(200);
  });

  it('--env passes one process variable, and no other', async () => {
    const cwd = makeProject({
      'ensembles/e.yaml': 'name: e\nflow: []\noutputs: { city: "${env.CITY}" }\n',
    });
    const served = await serveProject(cwd, ['--env', 'CITY'], { CITY: 'Lyon' });
    expect(await (await served.api('/execute/ensemble/e', {})).json()).toMatchObject({ output: { city: 'Lyon' } });
    const without = await ensemble(['serve', '--port', '0'], { cwd, env: { CITY: 'Lyon' } });
    expect([without.code, without.stdout]).toEqual([1, '']);
    expect(without.stderr).toContain('✗ 1 problem; nothing is served');
  });

  it('logs one line for each request: method, path, status, time; never the query, a token or a link', async () => {
    const served = await serveProject(makeProject());
    await served.api('/executions?limit=1&cursor=hidden', undefined, 'sk-service-wrong');
    await served.saw('401');
    await served.api('/execute/ensemble/greet', { input: { who: 'hidden' } });
    await served.saw(' 200 ');
    await fetch(`${served.url}/signals/hidden`);
    await served.saw(' 404 ');
    served.child.kill('SIGTERM');
    const { stderr } = await served.ended;
    const lines = stderr.split('\n').filter((line) => /^\d/.test(line));
    expect(lines[0]).toMatch(/^\d\d:\d\d:\d\d GET \/api\/v1\/executions 401 \d+ms$/);
    expect(lines[1]).toMatch(/^\d\d:\d\d:\d\d POST \/api\/v1\/execute\/ensemble\/greet 200 \d+ms$/);
    expect(lines[2]).toMatch(/^\d\d:\d\d:\d\d GET \/signals\/\*\*\* 404 \d+ms$/);
    expect(stderr).not.toMatch(/hidden|sk-service/);
  });
});

describe('a problem at the start of ensemble serve is printed in one line, with exit code 1', () => {
  it('a port in use', async () => {
    const url = await listen(createServer());
    const port = new URL(url).port;
    const cwd = makeProject();
    const { code, stdout, stderr } = await ensemble(['serve', '--port', port], { cwd });
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toBe(
      `error: port ${port} of 127.0.0.1 is in use; name another port with --port, or 0 for any free port\n`,
    );
    // The failed start created no token: the next start shows one.
    expect((await serveProject(cwd)).token).toMatch(/^sk-service-/);
  });

  it('a store that a newer version wrote, which is not changed', async () => {
    const cwd = makeProject();
    await ensemble(['token', 'create', '--name', 'n', '--scope', 'admin'], { cwd });
    await withFile(join(cwd, '.ensemble/data.sqlite'), (file) => file.exec('UPDATE ensemble_schema SET version = 99'));
    const { code, stderr } = await ensemble(['serve', '--port', '0'], { cwd });
    expect([code, stderr.split('\n').length]).toEqual([1, 2]);
    expect(stderr).toMatch(/^error: .*data\.sqlite was written by a newer version of ensemble-orchestrator/);
  });

  it.each([
    ['a folder that is not there', ['serve', 'nowhere'], 'error: there is no folder nowhere\n'],
    [
      'a folder that is not a project',
      ['serve', 'node_modules'],
      'error: node_modules is not a project: it has no folder `ensembles`\n',
    ],
    [
      'a store in a folder that is not there',
      ['serve', '--storage', 'sqlite:nowhere/x.sqlite'],
      /^error: sqliteStorage: can't open .*nowhere\/x\.sqlite .*its folder must exist and be writable\n$/,
    ],
    [
      'a project whose folder for the store can not be made',
      ['serve', 'full'],
      /^error: the folder .*full\/\.ensemble can't be created: .*; name another store with --storage\n$/,
    ],
    [
      'Postgres where none is',
      ['serve', '--storage', 'postgres://me:secret@127.0.0.1:1/x'],
      /^error: .*Postgres was not reached at 127\.0\.0\.1:1 within 2 s \(connect ECONNREFUSED 127\.0\.0\.1:1\); .*\n$/,
    ],
    [
      'an address that is not of this machine',
      ['serve', '--host', '192.0.2.1', '--port', '0'],
      /^error: 192\.0\.2\.1 is not an address of this machine; .*\n$/,
    ],
    [
      'a broken definition, with its frame',
      ['serve', 'broken'],
      /^broken\/ensembles\/e\.yaml:1:7 .*\n[\s\S]*✗ 1 problem; nothing is served\n$/,
    ],
  ])('%s', async (_, args, message) => {
    const cwd = makeFolder({
      ...GREET,
      'broken/ensembles/e.yaml': 'name: "1"\nflow: []\n',
      'full/ensembles/e.yaml': 'name: e\nflow: []\n',
      'full/.ensemble': 'a file',
    });
    const { code, stdout, stderr } = await ensemble(args, { cwd });
    expect([code, stdout]).toEqual([1, '']);
    if (typeof message === 'string') expect(stderr).toBe(message);
    else expect(stderr).toMatch(message);
  });

  it.each([
    ['--port', 'many', '--port must be a whole number from 0 (any free port) to 65535, not "many"'],
    ['--port', '70000', '--port must be a whole number from 0 (any free port) to 65535, not "70000"'],
    [
      '--storage',
      'postgres:me:secret@db/x',
      '--storage must be memory, sqlite:FILE (such as sqlite:data.sqlite) or postgres://USER@HOST/DATABASE, not "postgres:me:...@db/x"',
    ],
  ])('wrong usage ends with 2: %s %s', async (option, value, message) => {
    const { code, stderr } = await ensemble(['serve', option, value], { cwd: makeProject() });
    expect([code, stderr]).toEqual([2, `error: ${message}\n`]);
  });
});

describe('ensemble serve stops', () => {
  it('on SIGTERM it lets running executions end, sends their responses, and accepts no new requests', async () => {
    const cwd = makeProject(GATED);
    const served = await serveProject(cwd);
    const [gate, other] = [await startGate(), await startGate()];
    const early = connect(Number(new URL(served.url).port), '127.0.0.1');
    await new Promise((resolve) => early.once('connect', resolve));
    const answer = served.api('/execute/ensemble/gated', { input: { gate: gate.url } });
    const accepted = await served.api('/execute/ensemble/gated', { input: { gate: other.url }, async: true });
    const { executionId } = (await accepted.json()) as { executionId: string };
    await Promise.all([gate.reached, other.reached]);
    served.child.kill('SIGTERM');
    await served.saw('stopping');
    await expect(fetch(`${served.url}/api/v1/health`)).rejects.toThrow('fetch failed');
    // An open connection gets 503.
    let told = '';
    early.on('data', (chunk) => {
      told += chunk;
    });
    const ended = new Promise((resolve) => early.once('close', resolve));
    early.write('GET /api/v1/health HTTP/1.1\r\nhost: x\r\n\r\n');
    await ended;
    expect(told).toMatch(/^HTTP\/1\.1 503 [\s\S]*"code":"OVERLOADED"/);
    // Every response has them.
    for (const header of ['x-request-id: ', 'x-content-type-options: nosniff', 'cache-control: no-store'])
      expect(told).toContain(header);
    gate.open();
    const response = await answer;
    expect([response.status, response.headers.get('connection')]).toEqual([200, 'close']);
    expect(await response.json()).toMatchObject({ status: 'completed', output: { passed: 'passed' } });
    other.open();
    const { code, stderr } = await served.ended;
    expect([code, stderr.endsWith('stopped\n')]).toEqual([0, true]);
    const { stdout } = await ensemble(['execution', 'show', executionId, '--json'], { cwd });
    expect(JSON.parse(stdout)).toMatchObject({ status: 'completed', output: { passed: 'passed' } });
  });

  it('an event stream gets its last event before the store closes', async () => {
    const served = await serveProject(makeProject(GATED));
    const gate = await startGate();
    const accepted = await served.api('/execute/ensemble/gated', { input: { gate: gate.url }, async: true });
    const { executionId } = (await accepted.json()) as { executionId: string };
    const stream = await served.api(`/executions/${executionId}/events`);
    await gate.reached;
    served.child.kill('SIGINT');
    await served.saw('stopping');
    gate.open();
    expect((await stream.text()).trimEnd().split('\n\n').at(-1)).toMatch(/^id: 4\nevent: execution\.completed\n/);
    expect((await served.ended).code).toBe(0);
  });

  it('a response is sent completely to a slow client', async () => {
    // As large as a page of agent runs.
    const names = ['a', 'b'];
    const cwd = makeProject({
      'ensembles/big.yaml': `name: big
flow:
${names.map((name) => `  - { agent: ${name}, operation: code, config: { script: big } }\n`).join('')}`,
      'scripts/big.mjs': "export default () => 'x'.repeat(4_000_000);\n",
    });
    const served = await serveProject(cwd, ['--storage', 'memory']);
    const ran = (await (await served.api('/execute/ensemble/big', {})).json()) as { executionId: string };
    const response = await served.api(`/executions/${ran.executionId}/agents`);
    served.child.kill('SIGTERM');
    await served.saw('stopping');
    await until(() =>
      fetch(served.url).then(
        () => false,
        () => true,
      ),
    );
    const { agents } = (await response.json()) as { agents: { output: string }[] };
    expect(agents.map(({ output }) => output.length)).toEqual(names.map(() => 4_000_000));
    expect((await served.ended).code).toBe(0);
  });

  it('an idle connection does not delay the stop', async () => {
    const served = await serveProject(makeProject());
    const silent = connect(Number(new URL(served.url).port), '127.0.0.1');
    await new Promise((resolve) => silent.once('connect', resolve));
    served.child.kill('SIGTERM');
    expect((await served.ended).code).toBe(0);
    silent.destroy();
  }, 10_000);

  it('a second signal ends the process at once', async () => {
    const served = await serveProject(makeProject(GATED));
    const gate = await startGate();
    const answer = served.api('/execute/ensemble/gated', { input: { gate: gate.url } });
    await gate.reached;
    served.child.kill('SIGTERM');
    await served.saw('stopping');
    served.child.kill('SIGTERM');
    await expect(answer).rejects.toThrow('fetch failed');
    expect((await served.ended).code).toBe(143);
  });
});
