/** The newsletter does what its README says. */

import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import { loadProject } from '../../src/entries/node.ts';
import { createTestOrchestrator } from '../../src/entries/testing.ts';
import { memoryMail } from '../../src/index.ts';
import { ensemble, ensureBuilt, ROOT } from '../cli/cli-process.ts';

const EXAMPLE = join(ROOT, 'examples/newsletter');

describe('the newsletter', () => {
  beforeAll(ensureBuilt, 60_000);

  it('reaches every reader with a valid address, and reports the others', async () => {
    const mail = memoryMail();
    const project = await loadProject(pathToFileURL(`${EXAMPLE}/`), { mail: { smtp: mail } });
    const { output } = await createTestOrchestrator(project as never).execute('newsletter', {
      issue: { title: 'tea', story: 'x', editor: 'editor@acme.example' },
    });
    expect(output).toMatchObject({ sent: 4, failed: 1, unreached: [{ index: 2, code: 'INVALID_INPUT' }] });
    const [report] = mail.messages.slice(-1);
    expect(report?.subject).toBe('tea: 4 sent, 1 failed');
    const [file] = report?.attachments ?? [];
    expect(JSON.parse(new TextDecoder().decode(file?.content))).toHaveLength(1);
  });

  it('prints what its README shows', async () => {
    const [, shown] = /```text\n([\s\S]*?)```/.exec(readFileSync(join(EXAMPLE, 'README.md'), 'utf8')) ?? [];
    const { stdout } = await promisify(execFile)(process.execPath, ['--no-warnings', join(EXAMPLE, 'start.mjs')]);
    expect(stdout.trim()).toBe(shown?.trim());
  });

  it('is a project without problems for `ensemble validate`', async () => {
    const { stdout, code } = await ensemble(['validate', EXAMPLE]);
    expect([code, stdout]).toEqual([0, '✓ 3 files, no problems\n']);
  });
});
