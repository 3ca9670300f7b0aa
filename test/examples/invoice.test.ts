/** The example that mails an invoice: what it prints, the mail that a server receives, and what is kept of a mail that was not sent. */

import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, expect, it, onTestFinished } from 'vitest';
import { folderObjects } from '../../src/entries/node.ts';
import { ensemble, ensureBuilt, ROOT } from '../cli/cli-process.ts';
import { smtpPeer } from '../mail/smtp-peer.ts';
import { readPdf } from '../pdf/read-pdf.ts';

const EXAMPLE = join(ROOT, 'examples/invoice');
const INVOICE =
  /Invoice 2026-0042 For Zażółć & Synowie <Łódź> Text Amount Consulting, September € ?960\.00 Hosting of the shop, a year € ?240\.00 Total € ?1200\.00 Thank you ✓ 1 \/ 1/;

beforeAll(ensureBuilt, 60_000);

/** Runs the example in a process whose only further variables are these. */
function start(args: readonly string[], variables: Readonly<Record<string, string>> = {}) {
  const { PATH, HOME } = process.env;
  const env = { PATH, HOME, ...variables } as NodeJS.ProcessEnv;
  return promisify(execFile)(process.execPath, [join(EXAMPLE, 'start.mjs'), ...args], { env });
}

function smtpVariables(port: number) {
  const addresses = { MAIL_FROM: 'Acme <billing@acme.example>', MAIL_TO: 'ada@example.com' };
  return { SMTP_HOST: '127.0.0.1', SMTP_PORT: String(port), ...addresses };
}

function makeTemporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'invoice-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

it('without an SMTP server, the example prints what its README shows', { timeout: 60_000 }, async () => {
  const [, shown = ''] = /```text\n([\s\S]*?)```/.exec(readFileSync(join(EXAMPLE, 'README.md'), 'utf8')) ?? [];
  const { stdout, stderr } = await start([]);
  expect([stdout, stderr]).toEqual([shown, '']);
});

it('an SMTP server receives the mail, and the attached PDF has every line', { timeout: 60_000 }, async () => {
  const peer = await smtpPeer();
  onTestFinished(() => peer.close());
  const { stdout } = await start([], smtpVariables(peer.port));
  expect(stdout).toBe('smtpMail: 127.0.0.1\ninvoice 2026-0042, € 1200.00, 1 page: sent to ada@example.com\n');
  const [mail, ...others] = await peer.received();
  expect(others).toEqual([]);
  expect(mail).toMatchObject({
    recipients: ['ada@example.com'],
    from: { address: 'billing@acme.example', name: 'Acme' },
    subject: 'Invoice 2026-0042',
    text: expect.stringContaining('Dear Zażółć & Synowie <Łódź>,'),
    html: expect.stringContaining('Dear Zażółć &amp; Synowie &lt;Łódź&gt;,'),
    attachments: [{ filename: 'invoice-2026-0042.pdf', contentType: 'application/pdf' }],
  });
  const { pages } = await readPdf(mail?.attachments[0]?.content ?? new Uint8Array());
  expect(pages).toEqual([expect.stringMatching(INVOICE)]);
});

it('if the server refuses the recipient, the PDF is in the object store', { timeout: 60_000 }, async () => {
  const peer = await smtpPeer({
    onRcptTo: (_address, _session, done) => done(Object.assign(new Error('no such user'), { responseCode: 550 })),
  });
  onTestFinished(() => peer.close());
  const folder = makeTemporaryFolder();
  const { stdout } = await start([folder], smtpVariables(peer.port));
  expect(stdout).toMatch(/not sent \(.*no such user.*\), kept as unsent\/invoice-2026-0042\.pdf\n$/);
  expect(peer.raw).toEqual([]);
  const object = await folderObjects(folder).get('unsent/invoice-2026-0042.pdf');
  expect(object?.contentType).toBe('application/pdf');
  const { pages } = await readPdf(object?.content ?? new Uint8Array());
  expect(pages).toEqual([expect.stringMatching(INVOICE)]);
});

it('the example is a project without problems for `ensemble validate`', { timeout: 60_000 }, async () => {
  const { stdout, code } = await ensemble(['validate', EXAMPLE]);
  expect([code, stdout]).toEqual([0, '✓ 3 files, no problems\n']);
});
