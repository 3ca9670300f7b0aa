/** A token that is set before the first start: `ensemble token new`, and `ENSEMBLE_TOKEN` for `ensemble serve`. */

import { createHash } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
import { ensemble, ensureBuilt, makeFolder } from './cli-process.ts';
import { ensembleHere } from './in-process.ts';
import { GREET, makeProject, serveProject } from './served-project.ts';

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');
const VALUE = /^sk-service-[0-9A-Za-z]{42}$/;

describe('ensemble token new', () => {
  it('prints a value on stdout and its SHA-256 on stderr, and needs no project', async () => {
    const { code, stdout, stderr } = await ensembleHere(['token', 'new'], makeFolder({}));
    const value = stdout.trim();
    expect([code, value]).toEqual([0, expect.stringMatching(VALUE)]);
    expect(stderr).toContain(sha256(value));
    expect(stderr).not.toContain(value);
  });

  it('--json prints both, and the value begins with the brand of the project', async () => {
    const cwd = makeFolder({ ...GREET, 'ensemble.config.mjs': "export default { brand: 'acme' };\n" });
    const { token, hash } = JSON.parse((await ensembleHere(['token', 'new', '--json'], cwd)).stdout);
    expect([token, hash]).toEqual([expect.stringMatching(/^sk-acme-/), sha256(token)]);
  });
});

describe('ENSEMBLE_TOKEN for ensemble serve', () => {
  beforeAll(ensureBuilt, 60_000);
  const newValue = async () => (await ensembleHere(['token', 'new'], makeFolder({}))).stdout.trim();

  it('is an admin token of the server, also after a restart with a memory store; no other token is printed', async () => {
    const value = await newValue();
    const cwd = makeProject();
    for (const _start of [1, 2]) {
      const served = await serveProject(cwd, ['--storage', 'memory'], { ENSEMBLE_TOKEN: value });
      expect(served.printed).toContain('  tokens     the one in ENSEMBLE_TOKEN, with the scopes admin\n');
      expect(served.printed).not.toContain('sk-service-');
      const response = await served.api('/tokens', undefined, value);
      expect(await response.json()).toMatchObject({
        tokens: [{ name: 'admin', scopes: ['admin'], plan: 'enterprise' }],
      });
      served.child.kill('SIGKILL');
      await served.ended;
    }
  });

  it('that the store knows keeps its scopes', async () => {
    const cwd = makeProject();
    const made = await ensemble(['token', 'create', '--name', 'ci', '--scope', 'read:ensembles'], { cwd });
    const value = made.stdout.trim();
    const served = await serveProject(cwd, [], { ENSEMBLE_TOKEN: value });
    expect(served.printed).toContain('the one in ENSEMBLE_TOKEN, with the scopes read:ensembles\n');
    expect((await served.api('/tokens', undefined, value)).status).toBe(403);
  });

  it('that is not the value of a token is refused with how to make one, and is not printed', async () => {
    const ran = await ensemble(['serve', '--port', '0'], {
      cwd: makeProject(),
      env: { ENSEMBLE_TOKEN: 'my-password' },
    });
    expect([ran.code, ran.stdout]).toEqual([2, '']);
    expect(ran.stderr).toContain('export ENSEMBLE_TOKEN=$(ensemble token new)');
    expect(ran.stderr).not.toContain('my-password');
  });
});
