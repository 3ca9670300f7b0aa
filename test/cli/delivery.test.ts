/** `ensemble delivery` and `ensemble listen`: a served project notifies a receiver of this machine. */

import { join } from 'node:path';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { ensemble as ensembleProcess, ensureBuilt, makeFolder, ROOT, startEnsemble } from './cli-process.ts';
import { ensemble } from './in-process.ts';
import { serveProject, until } from './served-project.ts';

beforeAll(ensureBuilt, 60_000);

const SECRET = 'a-long-random-secret';
const PROJECT = {
  'ensembles/pay.yaml': `name: pay
notifications:
  - { type: webhook, url: "\${env.HOOK_URL}", secret: "\${env.HOOK_SECRET}", retries: 0, events: [execution.completed] }
flow: []
outputs: { paid: 7 }
`,
  'ensemble.config.mjs': `import { nodeHttp } from '${join(ROOT, 'dist/node.js')}';
export default { env: ['HOOK_URL', 'HOOK_SECRET'], http: nodeHttp({ allow: ['127.0.0.1'] }) };
`,
};

/** Starts a receiver, and returns its address and what it has printed. */
async function startReceiver(...args: string[]) {
  const started = startEnsemble(['listen', '--port', '0', ...args], { env: { SECRET } });
  onTestFinished(() => void started.child.kill('SIGKILL'));
  let said = '';
  started.child.stderr?.on('data', (part) => {
    said += part;
  });
  let printed = '';
  started.child.stdout?.on('data', (part) => {
    printed += part;
  });
  const url = await until(async () => /listening on (\S+);/.exec(said)?.[1]);
  return { ...started, url, printed: () => printed };
}

describe('ensemble delivery and ensemble listen', () => {
  it('ensemble run sends the notifications of its execution before it ends, and says what was not delivered', async () => {
    const receiver = await startReceiver('--secret-env', 'SECRET');
    const cwd = makeFolder(PROJECT);
    // `run` reads the variables of its process.
    const run = (url: string) => ensembleProcess(['run', 'pay'], { cwd, env: { HOOK_URL: url, HOOK_SECRET: SECRET } });
    const { code, stderr } = await run(receiver.url);
    expect([code, stderr]).toEqual([0, expect.not.stringContaining('not delivered')]);
    await until(async () => receiver.printed().includes('signature: valid'));
    receiver.child.kill('SIGKILL');
    const refused = await run('http://127.0.0.1:1/');
    expect([refused.code, refused.stderr]).toEqual([0, expect.stringContaining('not delivered: 1')]);
  });

  it('a delivery is received, listed, shown and sent again', async () => {
    const receiver = await startReceiver('--secret-env', 'SECRET');
    const served = await serveProject(makeFolder(PROJECT), [], { HOOK_URL: receiver.url, HOOK_SECRET: SECRET });
    const client = async (...args: string[]) => {
      const place = ['--url', served.url, '--token', served.token];
      const { code, stdout, stderr } = await ensemble(['delivery', ...args, ...place]);
      return { code, stdout, stderr };
    };
    await served.api('/execute/ensemble/pay', { input: {} });
    await until(async () => receiver.printed().includes('signature: valid'));
    expect(receiver.printed()).toMatch(/^execution\.completed {2}attempt 1 {2}dlv_\w{26} {2}signature: valid\n\{/);
    const listed = await until(async () => {
      const found = await client('list', '--json');
      return found.stdout.includes('succeeded') && found;
    });
    const [{ id }] = JSON.parse(listed.stdout).deliveries;
    expect((await client('list', '--status', 'failed')).stderr).toBe('no deliveries\n');
    expect((await client('list')).stdout).toMatch(
      new RegExp(`^ID .*\\n${id} +execution\\.completed +webhook +pay +succeeded .* 1 +204\\n$`),
    );
    const shown = (await client('show', id)).stdout;
    expect(shown).toMatch(/attempt 1 {2}\d{4}-.* 204\nbody {7}\{"event":"execution\.completed"/);
    expect((await client('redeliver', id)).code).toBe(0);
    await until(async () => receiver.printed().includes('attempt 2'));
    await until(async () => (await client('list', '--status', 'succeeded', '--json')).stdout.includes(id));
    expect((await client('replay', '--status', 'succeeded', '--since', '1h')).code).toBe(0);
    await until(async () => receiver.printed().includes('attempt 3'));
    expect(await client('show', 'dlv_1')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('no such delivery'),
    });
    receiver.child.kill('SIGINT');
    expect((await receiver.ended).code).toBe(0);
  });

  it('a receiver that answers 410 is listed as paused, and resumed by its address', async () => {
    const receiver = await startReceiver('--status', '410', '--json');
    const served = await serveProject(makeFolder(PROJECT), [], { HOOK_URL: receiver.url, HOOK_SECRET: SECRET });
    const client = (...args: string[]) => ensemble(['delivery', ...args, '--url', served.url, '--token', served.token]);
    await served.api('/execute/ensemble/pay', { input: {} });
    const [line] = await until(async () => receiver.printed().includes('\n') && receiver.printed().split('\n'));
    expect(JSON.parse(String(line))).toMatchObject({
      event: 'execution.completed',
      attempt: 1,
      signature: 'not checked',
    });
    const paused = await until(async () => {
      const { stdout } = await client('receivers');
      return stdout.includes('gone') && stdout;
    });
    expect(paused).toMatch(/^RECEIVER .*\nwebhook:[0-9a-f]{32} .* gone\n$/);
    const resumed = await client('resume', receiver.url);
    expect([resumed.code, resumed.stderr]).toEqual([0, 'the receiver is resumed; deliveries that waited for it: 0\n']);
    expect((await client('receivers')).stderr).toBe('no receiver fails\n');
  });

  it('listen refuses a variable that is not set, and a status that is none', async () => {
    const run = async (...args: string[]) => (await ensemble(['listen', ...args])).stderr;
    expect(await run('--secret-env', 'NOT_SET')).toContain('the variable NOT_SET is not set');
    expect(await run('--status', '700')).toContain('--status must be a whole number from 200 to 599');
  });
});
