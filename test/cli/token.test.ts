/** `ensemble token`: on a store and on a running server. */

import { existsSync, truncateSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { ensureBuilt, makeFolder } from './cli-process.ts';
import { ensemble } from './in-process.ts';
import { GREET, listen, makeProject, serveProject } from './served-project.ts';

beforeAll(ensureBuilt, 60_000);

const create = (...more: readonly string[]) => ['token', 'create', '--name', 'ci', ...more];

describe('ensemble token', () => {
  it('create gives a token the plan of the config', async () => {
    const cwd = makeFolder({
      'ensembles/a.yaml': 'name: a\nflow: []\n',
      'ensemble.config.mjs': "export default { limits: { plan: 'pro' } };\n",
    });
    const args = ['token', 'create', '--name', 'ci', '--scope', 'admin', '--json'];
    expect(JSON.parse((await ensemble(args, { cwd })).stdout).plan).toBe('pro');
    expect(JSON.parse((await ensemble([...args, '--plan', 'free'], { cwd })).stdout).plan).toBe('free');
  });

  it('a token created in the store of a running server is valid there at once, and refused after it is revoked', async () => {
    const served = await serveProject(makeProject());
    const { cwd } = served;
    const made = await ensemble(create('--scope', 'read:ensembles'), { cwd });
    expect([made.code, made.stdout]).toEqual([0, expect.stringMatching(/^sk-service-[0-9A-Za-z]{42}\n$/)]);
    const value = made.stdout.trim();
    const id = /tok_\w{26}/.exec(made.stderr)?.[0] as string;
    expect((await served.api('/ensembles', undefined, value)).status).toBe(200);
    const revoked = await ensemble(['token', 'revoke', id], { cwd });
    expect([revoked.code, revoked.stderr]).toEqual([0, `✓ token ${id} is revoked\n`]);
    const refused = await served.api('/ensembles', undefined, value);
    expect([refused.status, await refused.json()]).toMatchObject([401, { error: { code: 'UNAUTHORIZED' } }]);
    const again = await ensemble(['token', 'revoke', id], { cwd });
    expect([again.code, again.stderr]).toEqual([1, `error: there is no token ${id}\n`]);
  });

  it('--json prints the token object, and the list never has its value', async () => {
    const cwd = makeProject();
    const before = Date.now();
    const options = [
      '--scope',
      'read:executions',
      'execute:ensembles',
      '--expires-in',
      '3600',
      '--plan',
      'pro',
      '--json',
    ];
    const made = JSON.parse((await ensemble(create(...options), { cwd })).stdout);
    expect(made).toMatchObject({ name: 'ci', scopes: ['read:executions', 'execute:ensembles'], plan: 'pro' });
    expect(made.expiresAt - made.createdAt).toBe(3_600_000);
    expect(made.createdAt).toBeGreaterThanOrEqual(before);
    const { stdout } = await ensemble(['token', 'list', '--json'], { cwd });
    const { token, ...shown } = made;
    expect(JSON.parse(stdout)).toEqual({ tokens: [{ ...shown, last4: token.slice(-4) }] });
  });

  it.each([
    [['--name', '', '--scope', 'admin'], '--name must have 1 to 200 characters, not 0'],
    [['--name', 'x'.repeat(201), '--scope', 'admin'], '--name must have 1 to 200 characters, not 201'],
    [['--name', 'x', '--scope', 'admin', '--expires-in', '315360001'], 'at most 315360000 (ten years)'],
  ])('a value that no token can have is wrong usage, and no store is created (%j)', async (args, message) => {
    const cwd = makeProject();
    const { code, stdout, stderr } = await ensemble(['token', 'create', ...args], { cwd });
    expect([code, stdout, stderr]).toEqual([2, '', expect.stringContaining(message)]);
    expect(existsSync(join(cwd, '.ensemble'))).toBe(false);
  });

  it('a truncated store gets a message that it is damaged, and what to do', async () => {
    const cwd = makeProject();
    await ensemble(create('--scope', 'admin', '--storage', 'sqlite:cut.sqlite'), { cwd });
    truncateSync(join(cwd, 'cut.sqlite'), 6000);
    const { code, stderr } = await ensemble(['token', 'list', '--storage', 'sqlite:cut.sqlite'], { cwd });
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(/^error: the SQLite file .*cut\.sqlite is damaged, .*restore the file from a backup/),
    ]);
  });

  it('lists tokens as a table, oldest first, that fits 80 columns', async () => {
    const cwd = makeProject();
    const scopes = ['--scope', 'read:ensembles', '--scope', 'execute:ensembles'];
    await ensemble(create('--scope', 'admin', '--expires-in', '86400'), { cwd });
    await ensemble(['token', 'create', '--name', `a\u202e[31m${'long'.repeat(10)}`, ...scopes], { cwd });
    const refused = await ensemble(['token', 'create', '--name', 'a\u001b[31m', ...scopes], { cwd });
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('must have no control characters')]);
    const { stdout } = await ensemble(['token', 'list'], { cwd, env: { COLUMNS: '80' } });
    const [head, first, second, ...rest] = stdout.split('\n');
    expect(head).toMatch(/^ID {30}NAME +SCOPES +EXPIRES {2}LAST USED$/);
    expect(first).toMatch(/^tok_\w{26} {2}ci +admin +in 24h {3}never$/);
    expect(second).toMatch(/^tok_\w{26} {2}a\ufffd\[31mlo\S*… +read:\S+… +never {4}never$/);
    expect(second).toHaveLength((head as string).length - 'LAST USED'.length + 'never'.length);
    expect(head?.length).toBeLessThanOrEqual(80);
    expect(rest).toEqual(['']);
    const whole = await ensemble(['token', 'list'], { cwd });
    expect(whole.stdout).toContain(`${'long'.repeat(10)}  read:ensembles, execute:ensembles  never`);
  });

  it('works on a running server: with --url and --token, and with the variables', async () => {
    const served = await serveProject(makeProject());
    const cwd = makeFolder({});
    const flags = ['--url', `${served.url}/`, '--token', served.token];
    const env = { ENSEMBLE_URL: served.url, ENSEMBLE_TOKEN: served.token };
    const made = await ensemble(create('--scope', 'read:ensembles', '--json', ...flags), { cwd });
    const { id, token } = JSON.parse(made.stdout);
    expect((await served.api('/ensembles', undefined, token)).status).toBe(200);
    const listed = await ensemble(['token', 'list', '--json'], { cwd, env });
    expect(JSON.parse(listed.stdout).tokens.map((one: { name: string }) => one.name)).toEqual(['admin', 'ci']);
    const revoked = await ensemble(['token', 'revoke', id, '--json'], { cwd, env });
    expect(JSON.parse(revoked.stdout)).toEqual({ id, revoked: true });
    expect((await served.api('/ensembles', undefined, token)).status).toBe(401);
  });

  it("shows a server's refusal as the store's own: only its message", async () => {
    const served = await serveProject(makeProject());
    const { stdout } = await ensemble(create('--scope', 'read:ensembles'), { cwd: served.cwd });
    const ask = (token: string) => ensemble(['token', 'list', '--url', served.url, '--token', token]);
    const poor = await ask(stdout.trim());
    expect([poor.code, poor.stderr]).toEqual([1, 'error: this needs a token with the scope `admin`\n']);
    const unknown = await ask('sk-service-x');
    expect([unknown.code, unknown.stderr]).toEqual([1, 'error: the API token is not valid\n']);
    const gone = await ensemble(['token', 'revoke', 'tok_nobody', '--url', served.url, '--token', served.token]);
    expect([gone.code, gone.stderr]).toEqual([1, 'error: there is no such token\n']);
  });

  it('explains that the address is not an ensemble server', async () => {
    const html = await listen(createServer((_, response) => response.end('<html>')));
    const json = await listen(createServer((_, response) => response.end('{"items":[]}')));
    const broken = await listen(createServer((_, response) => response.writeHead(502).end('bad gateway')));
    const seen: string[] = [];
    const away = await listen(createServer((request, response) => response.end(seen.push(request.url ?? ''))));
    const moved = await listen(createServer((_, response) => response.writeHead(307, { location: away }).end()));
    const cut = await listen(createServer((request) => request.destroy()));
    const ask = async (url: string) => (await ensemble(['token', 'list', '--url', url, '--token', 'x'])).stderr;
    const host = (url: string) => new URL(url).host;
    for (const stranger of [html, json]) {
      const message = `error: ${host(stranger)} responded, but it is not an ensemble server; check the address\n`;
      expect(await ask(stranger)).toBe(message);
      const watch = ['execution', 'watch', 'exec_1', '--url', stranger, '--token', 'x'];
      expect((await ensemble(watch)).stderr).toBe(message);
    }
    expect(await ask(broken)).toBe(
      `error: ${host(broken)} responded with 502, but it is not an ensemble server; check the address\n`,
    );
    expect(await ask(moved)).toBe(
      `error: ${host(moved)} responded with 307, but it is not an ensemble server; check the address\n`,
    );
    expect(seen).toEqual([]);
    expect(await ask(cut)).toBe(`error: ${host(cut)} closed the connection before it responded\n`);
    const free = createServer();
    const closed = await listen(free);
    await new Promise((resolve) => free.close(resolve));
    expect(await ask(closed)).toBe(
      `error: no server listens at ${host(closed)}; check that it is running, and check the port\n`,
    );
  });

  it('creates a store that does not exist yet, which a server then uses', async () => {
    const cwd = makeProject();
    const listed = await ensemble(['token', 'list'], { cwd });
    expect([listed.code, listed.stderr]).toEqual([
      1,
      'error: there is no store .ensemble/data.sqlite yet; `ensemble serve` and `ensemble token create` create it. Name another store with --storage, or a running server with --url\n',
    ]);
    const { stdout } = await ensemble(create('--scope', 'admin', '--storage', 'sqlite:shop.db'), { cwd });
    const served = await serveProject(cwd, ['--storage', 'sqlite:shop.db']);
    expect(served.token).toBe('');
    expect((await served.api('/tokens', undefined, stdout.trim())).status).toBe(200);
  });

  it('--dir names the project, and a problem of its config is printed', async () => {
    const cwd = makeFolder({
      'a/ensembles/e.yaml': GREET['ensembles/greet.yaml'],
      'b/ensembles/e.yaml': 'name: e\nflow: []\n',
      'b/ensemble.config.mjs': 'export default [];\n',
    });
    // Problems of its definitions (a missing script) do not matter here.
    expect((await ensemble(create('--scope', 'admin', '--dir', 'a'), { cwd })).code).toBe(0);
    expect(
      (await ensemble(['token', 'list', '--storage', `sqlite:${join(cwd, 'a/.ensemble/data.sqlite')}`])).stdout,
    ).toMatch(/ {2}ci {4}admin {3}never/);
    const broken = await ensemble(create('--scope', 'admin', '--dir', 'b'), { cwd });
    expect([broken.code, broken.stderr]).toEqual([
      1,
      'error: b/ensemble.config.mjs has no object as its default export; write `export default defineConfig({ ... })`\n',
    ]);
  });

  it.each([
    [
      create('--scope', 'execute:ensemble'),
      'error: there is no scope "execute:ensemble"; did you mean execute:ensembles?\n',
    ],
    [
      create('--scope', 'admin', '--plan', 'gold'),
      'error: there is no plan "gold"; the 3 plans: free, pro, enterprise\n',
    ],
    [
      create('--scope', 'admin', '--expires-in', '1d'),
      'error: --expires-in must be a whole number of seconds, such as 86400 for a day, not "1d"\n',
    ],
    [
      ['token', 'create', '--scope', 'admin'],
      "error: required option '--name <name>' not specified\nHelp: ensemble token create --help\n",
    ],
    [
      ['token', 'list', '--url', 'http://x', '--storage', 'sqlite:x'],
      'error: --url names a running server, but --storage and --dir name a store: leave one of them out\n',
    ],
    [['token', 'list', '--token', 'x'], 'error: --token is for a running server; name it with --url\n'],
    [
      ['token', 'list', '--url', 'http://127.0.0.1:3000'],
      'error: a running server needs a token: pass it with --token, or in the variable ENSEMBLE_TOKEN\n',
    ],
    [
      ['token', 'list', '--url', 'localhost:3000', '--token', 'x'],
      'error: --url must be the address of a server, such as http://127.0.0.1:3000, not "localhost:3000"\n',
    ],
    [
      ['token', 'list', '--storage', 'memory'],
      'error: --storage memory is inside the process that serves it; name that server with --url\n',
    ],
  ])('wrong usage ends with 2: %s', async (args, message) => {
    const { code, stdout, stderr } = await ensemble(args, { cwd: makeProject() });
    expect([code, stdout, stderr]).toEqual([2, '', message]);
  });
});
