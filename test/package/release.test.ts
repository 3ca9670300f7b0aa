/** `scripts/check-release.mjs`, the last check before a release: it names what is missing, and then verifies. */

import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { manifest, ROOT } from './built-package.ts';

const READY = {
  version: '1.2.3',
  repository: { type: 'git', url: 'git+https://code.example.com/team/project.git' },
  homepage: 'https://project.example.com/',
  bugs: { url: 'https://code.example.com/team/project/issues' },
};
const CHANGELOG =
  '# Changelog\n\n## Unreleased\n\n## 1.2.3 - 2030-01-31\n\n### Fixed\n\n- A mistake.\n\n## 1.2.2 - 2030-01-01\n\n- Old.\n';

/** Runs the check in a folder with these files. Its `verify` prints `verified` and has this exit code. */
function checkRelease(fields: object, changelog: string | undefined, verified = 0) {
  const folder = mkdtempSync(join(tmpdir(), 'release-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const scripts = { verify: `echo verified && exit ${verified}` };
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ name: 'project', ...fields, scripts }));
  if (changelog !== undefined) writeFileSync(join(folder, 'CHANGELOG.md'), changelog);
  const { status, stdout, stderr } = spawnSync(process.execPath, [join(ROOT, 'scripts/check-release.mjs')], {
    cwd: folder,
    encoding: 'utf8',
  });
  return {
    status,
    verified: stdout.includes('verified'),
    problems: [...stderr.matchAll(/^ {2}- (.*)$/gm)].map(([, line]) => line),
  };
}

describe('the check before a release', () => {
  it('runs before `npm publish`', () => {
    expect(manifest.scripts.prepublishOnly).toBe('node scripts/check-release.mjs');
  });

  it('verifies when nothing is missing, and its exit code is that of `npm run verify`', () => {
    expect(checkRelease(READY, CHANGELOG)).toEqual({ status: 0, verified: true, problems: [] });
    expect(checkRelease(READY, CHANGELOG, 1)).toEqual({ status: 1, verified: true, problems: [] });
  });

  it('names every field and section that is missing, and verifies nothing', () => {
    expect(checkRelease({ version: '1.2.3' }, '# Changelog\n\n## Unreleased\n\n- New.\n')).toEqual({
      status: 1,
      verified: false,
      problems: [
        'package.json has no `repository`: add { "type": "git", "url": "git+https://..." }',
        'package.json has no `homepage`: add "https://..."',
        'package.json has no `bugs`: add { "url": "https://..." }',
        'CHANGELOG.md has no section `## 1.2.3 - YYYY-MM-DD`',
        'CHANGELOG.md: the entries of `Unreleased` belong to a version: move them to `## 1.2.3`',
      ],
    });
  });

  it.each([
    ['no changelog', READY, undefined, 'CHANGELOG.md is missing'],
    [
      'a section without a date',
      READY,
      CHANGELOG.replace('1.2.3 - 2030-01-31', '1.2.3'),
      'CHANGELOG.md: the section 1.2.3 has no date: write `## 1.2.3 - YYYY-MM-DD`',
    ],
    [
      'a section that says that it is not released',
      READY,
      CHANGELOG.replace('2030-01-31', 'Unreleased'),
      'CHANGELOG.md: the section 1.2.3 has no date: write `## 1.2.3 - YYYY-MM-DD`',
    ],
    [
      'a section without entries',
      READY,
      CHANGELOG.replace('- A mistake.', ''),
      'CHANGELOG.md: the section 1.2.3 is empty',
    ],
    [
      'an address that is none',
      { ...READY, homepage: 'todo' },
      CHANGELOG,
      'package.json: `homepage` is not an https address: todo',
    ],
  ])('refuses %s', (_what, fields, changelog, problem) => {
    expect(checkRelease(fields, changelog)).toEqual({ status: 1, verified: false, problems: [problem] });
  });

  it('accepts a name in brackets and fields in their short form', () => {
    const fields = { ...READY, repository: READY.repository.url, bugs: READY.bugs.url };
    expect(checkRelease(fields, CHANGELOG.replace('1.2.3', '[1.2.3]')).status).toBe(0);
  });
});
