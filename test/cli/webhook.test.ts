/** `ensemble webhook`: lists the webhooks of a project, and calls one of a running server as its sender would. */

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { ensureBuilt, makeFolder } from './cli-process.ts';
import { ensemble } from './in-process.ts';
import { serveProject } from './served-project.ts';

beforeAll(ensureBuilt, 60_000);

const PROJECT = {
  'ensembles/orders.yaml': `name: orders
trigger:
  - { type: webhook, path: /webhooks/orders, auth: { type: signature, scheme: stripe, secret: "\${env.HOOK}" } }
  - { type: webhook, path: /webhooks/paid, auth: { type: signature, secret: "\${env.HOOK}" }, signal: paid, find: { id: "order-\${body.id}" } }
  - { type: webhook, path: /webhooks/orders, auth: { type: bearer, secret: "\${env.OTHER}" }, methods: [PUT], accept: [form] }
  - { type: webhook, path: /webhooks/ping, auth: { type: signature, secret: "\${env.HOOK}" }, methods: [GET] }
  - { type: webhook, path: /webhooks/login, auth: { type: oauth, issuer: "https://a.example", audience: us } }
flow:
  - if: \${input.waits == true}
    then: [{ wait: paid, timeout: 1m }]
outputs: { id: "\${input.id}" }
`,
  'ensemble.config.mjs': "export default { env: ['HOOK', 'OTHER'] };\n",
  '.env': 'HOOK=a-long-random-secret\nOTHER=another-long-secret\n',
};

describe('ensemble webhook', () => {
  it('list prints path, methods, credentials, ensemble and warnings, also without the secrets', async () => {
    const { '.env': _secret, ...files } = PROJECT;
    const cwd = makeFolder(files);
    const { code, stdout } = await ensemble(['webhook', 'list'], { cwd });
    expect(code).toBe(0);
    expect(stdout.split('\n').map((line) => line.split(/ {2,}/))).toEqual([
      ['PATH', 'METHODS', 'AUTH', 'ENSEMBLE', 'SENDS', 'WARNINGS'],
      ['/webhooks/login', 'POST', 'oauth', 'orders', 'a start'],
      ['/webhooks/orders', 'POST', 'signature, stripe', 'orders', 'a start'],
      ['/webhooks/orders', 'PUT', 'bearer', 'orders', 'a start'],
      ['/webhooks/paid', 'POST', 'signature, service', 'orders', 'signal paid'],
      [
        ...['/webhooks/ping', 'GET', 'signature, service', 'orders', 'a start'],
        expect.stringMatching(
          /^methods\[0\] the signature covers .*; has the secret of \/webhooks\/paid: each accepts the requests of the other$/,
        ),
      ],
      [''],
    ]);
    const { webhooks } = JSON.parse((await ensemble(['webhook', 'list', '--json'], { cwd })).stdout);
    expect(webhooks[3]).toMatchObject({ path: '/webhooks/paid', auth: 'signature, service', signal: 'paid' });
  });

  it('send signs the body with the secret of the trigger; the answer is printed, and the exit code says whether it was accepted', async () => {
    const served = await serveProject(makeFolder(PROJECT));
    const { cwd } = served;
    writeFileSync(join(cwd, 'body.json'), '{ "id": 7 }\n');
    const send = async (...args: string[]) => {
      const { code, stdout, stderr } = await ensemble(['webhook', 'send', ...args, '--url', served.url], { cwd });
      return { code, stderr, body: stdout === '' ? undefined : JSON.parse(stdout) };
    };
    const sent = await send('/webhooks/orders', '--body', 'body.json');
    expect(sent).toMatchObject({ code: 0, stderr: '✓ 200 OK\n', body: { status: 'completed', output: { id: 7 } } });
    const pinged = await send('/webhooks/ping?id=8', '--json');
    expect(pinged.body).toMatchObject({ status: 200, body: { output: { id: '8' } } });
    writeFileSync(join(cwd, 'body.form'), 'id=9');
    const put = await send('/webhooks/orders', '--method', 'put', '--body', 'body.form');
    expect(put).toMatchObject({ code: 0, body: { output: { id: '9' } } });
    const json = await send('/webhooks/orders', '--body', 'body.json', '--header', 'content-type: text/plain');
    expect(json).toMatchObject({ code: 1, stderr: '✗ 415 Unsupported Media Type\n' });
    const nobody = await send('/webhooks/paid', '--body', 'body.json');
    expect(nobody).toMatchObject({ code: 1, stderr: '✗ 404 Not Found\n' });
    const oauth = await send('/webhooks/login');
    expect(oauth).toMatchObject({ code: 2, stderr: expect.stringContaining('--header') });
    const bearer = await send('/webhooks/login', '--header', 'Authorization: Bearer abc');
    expect(bearer).toMatchObject({ code: 1, stderr: '✗ 401 Unauthorized\n' });
    const unknown = await send('/webhooks/order');
    expect(unknown).toMatchObject({ code: 1, stderr: expect.stringContaining('did you mean /webhooks/orders?') });
  });

  it('send says so if no server answers', async () => {
    const cwd = makeFolder(PROJECT);
    const { code, stderr } = await ensemble(['webhook', 'send', '/webhooks/orders', '--url', 'http://127.0.0.1:9'], {
      cwd,
    });
    expect([code, stderr]).toEqual([1, expect.stringContaining('does not answer')]);
  });
});
