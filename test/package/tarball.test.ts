/** The tarball that `npm publish` sends: its contents, the links of its pages, its commands, its first examples, and that packing builds. */

import { execFileSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, sep } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { fencedBlocks } from '../docs/code-blocks.ts';
import { printsAs, toProgram } from '../docs/runnable.ts';
import { manifest, ROOT } from './built-package.ts';
import { anchorsOf, brokenLinks, markdownPages, relativeLinks } from './markdown-links.ts';

/** Files of a checkout that is in use. None of them belongs in the package. */
const LOCAL_FILES = [
  '.env',
  'dist.log',
  'docs/api/index.html',
  'examples/mount-next/.next/build.js',
  'examples/mount-next/node_modules/next/index.js',
  'examples/mount-worker/.wrangler/state.sqlite',
  'examples/quickstart/.ensemble/quickstart.sqlite',
  'examples/quickstart/.env',
  'site/package.json',
  'src/index.ts',
  'test/a.test.ts',
];

const work = mkdtempSync(join(tmpdir(), 'tarball-'));
const installed = join(work, 'node_modules/ensemble-orchestrator');
afterAll(() => rmSync(work, { recursive: true, force: true }));

beforeAll(() => {
  const checkout = join(work, 'checkout');
  for (const path of ['package.json', 'LICENSE', 'NOTICE', 'dist', 'docs', 'examples', ...pagesAtRoot()])
    cpSync(join(ROOT, path), join(checkout, path), { recursive: true });
  for (const path of LOCAL_FILES) writeIn(checkout, path, '');
  npmPack(checkout, '--ignore-scripts', '--silent', '--pack-destination', work);
  execFileSync('tar', ['-xzf', `ensemble-orchestrator-${manifest.version}.tgz`], { cwd: work });
  mkdirSync(dirname(installed));
  cpSync(join(work, 'package'), installed, { recursive: true });
  for (const name of [...Object.keys(manifest.dependencies), 'libsql']) {
    mkdirSync(dirname(join(work, 'node_modules', name)), { recursive: true });
    symlinkSync(join(ROOT, 'node_modules', name), join(work, 'node_modules', name), 'dir');
  }
}, 60_000);

describe('the tarball', () => {
  it('has the build, the documentation and the examples, and nothing else of a checkout', () => {
    const files = filesIn(installed);
    const folders = [...new Set(files.map((path) => path.split('/')[0]))].sort();
    expect(folders).toEqual([...pagesAtRoot(), 'LICENSE', 'NOTICE', 'dist', 'docs', 'examples', 'package.json'].sort());
    expect(
      files.filter((path) => path.startsWith('dist/') && !/^dist\/[\w-]+(?:\.port-[\w-]+)?(\.d\.ts|\.js)$/.test(path)),
    ).toEqual([]);
    expect(files.filter((path) => LOCAL_FILES.includes(path))).toEqual([]);
    expect(files).toContain('docs/getting-started.md');
    expect(files).toContain('examples/quickstart/start.mjs');
    expect(files).toContain('examples/mount-next/app/api/v1/[...path]/route.js');
  });

  it('has every file that its package.json names', () => {
    const targets = Object.values(manifest.exports).flatMap((target) =>
      typeof target === 'string' ? [target] : Object.values(target),
    );
    const named = [...targets, ...Object.values(manifest.bin)];
    expect(named.filter((path) => !existsSync(join(installed, path)))).toEqual([]);
  });

  it('has no link, anchors included, that leads nowhere', () => {
    const pages = markdownPages(installed);
    expect(pages.length).toBeGreaterThan(70);
    expect(pages.flatMap((page) => brokenLinks(installed, page))).toEqual([]);
  });

  it.each(Object.keys(manifest.bin))('its command `%s` runs', (name) => {
    const printed = execFileSync(process.execPath, [join(installed, manifest.bin[name] ?? ''), '--version'], {
      cwd: work,
      encoding: 'utf8',
    });
    expect(printed.trim()).toBe(manifest.version);
  });

  it('has a command with the name of the package, which `npx` finds before an install', () => {
    expect(Object.keys(manifest.bin)).toContain('ensemble-orchestrator');
  });
});

describe('the first example', () => {
  it.each([
    ['README.md', 'commonjs'],
    ['README.md', 'module'],
    ['docs/getting-started.md', 'commonjs'],
    ['docs/getting-started.md', 'module'],
  ])('of %s is a YAML file, and runs as pasted after `npm init -y` with type %s', (page, type) => {
    const folder = mkdtempSync(join(work, 'first-'));
    execFileSync('npm', ['init', '-y'], { cwd: folder, stdio: 'ignore' });
    execFileSync('npm', ['pkg', 'set', `type=${type}`], { cwd: folder, stdio: 'ignore' });
    const text = readFileSync(join(installed, page), 'utf8');
    const blocks = fencedBlocks(page, text);
    const named = blocks.filter(({ marks }) => marks.some((mark) => mark.includes('.')));
    expect(blocks.find(({ language, code }) => language === 'ts' || /^flow:/m.test(code))?.language).toBe('yaml');
    expect(text.slice(0, text.indexOf('```ts'))).toMatch(/npm install ensemble-orchestrator( libsql)?\n/);
    for (const { marks, code } of named) writeIn(folder, marks[0] ?? '', code);
    const app = named.find(({ marks }) => marks[0] === 'app.mjs');
    const printed = execFileSync(process.execPath, ['app.mjs'], { cwd: folder, encoding: 'utf8' });
    expect(printsAs(toProgram(app as NonNullable<typeof app>).expected.join(' '), printed)).toBe(true);
  });
});

describe('an optional package that is not installed', () => {
  it.each([
    ['embeddedPdf', 'pdf', '{ pdf: embeddedPdf() }', 'npm install pdfmake html-to-pdfmake linkedom parse5 juice'],
    ['smtpMail', 'smtp', '{ mail: { smtp: smtpMail({ host: "mail.example" }) } }', 'npm install nodemailer'],
  ])('of %s is found by ready()', (name, entry, options, line) => {
    const code = `import { createOrchestrator } from 'ensemble-orchestrator';
import { ${name} } from 'ensemble-orchestrator/${entry}';
const orchestrator = createOrchestrator(${options});
console.log(await orchestrator.ready().then(() => 'ready', ({ code, message }) => code + ' ' + message));
await orchestrator.close();`;
    writeIn(work, `${entry}.mjs`, code);
    const printed = execFileSync(process.execPath, [`${entry}.mjs`], { cwd: work, encoding: 'utf8' });
    expect(printed).toContain(`NOT_CONFIGURED ${name}: the package `);
    expect(printed).toContain(line);
  });
});

describe('`npm pack`', () => {
  it('builds first: a clone without `dist` packs the build', () => {
    const clone = join(work, 'clone');
    const build = `node -e "fs.mkdirSync('dist'); fs.writeFileSync('dist/index.js', '')"`;
    const scripts = { ...manifest.scripts, build };
    writeIn(clone, 'package.json', JSON.stringify({ ...manifest, scripts }));
    npmPack(clone, '--silent');
    const listed = execFileSync('tar', ['-tzf', `ensemble-orchestrator-${manifest.version}.tgz`], {
      cwd: clone,
      encoding: 'utf8',
    });
    expect(listed.trim().split('\n').sort()).toEqual(['package/dist/index.js', 'package/package.json']);
  });
});

describe('the check of links sees', () => {
  it('links outside of code only, and no addresses', () => {
    const text = [
      '[a](a.md#b) and ![b](b.png "title"), `[c](c.md)`, [d](https://example.com), [`e`](e.md)',
      '[f]: f.md',
      '```md',
      '[g](g.md)',
      '```',
    ].join('\n');
    expect(relativeLinks(text)).toEqual(['a.md#b', 'b.png', 'e.md', 'f.md']);
  });

  it('headings outside of code only, and repeated ones with a number', () => {
    const text = '# One & two: `${x}`\n## [A](a.md) b\n## a b\n```sh\n# no heading\n```\n';
    expect(anchorsOf(text)).toEqual(['one--two-x', 'a-b', 'a-b-1']);
  });

  it('a page, a heading or a folder that is missing or outside of the package', () => {
    const root = join(work, 'pages');
    writeIn(root, 'a.md', '# A\n[1](b.md) [2](#a) [3](#b) [4](c/d.md#d) [5](c/d.md#e) [6](c) [7](../checkout)');
    writeIn(root, 'c/d.md', '# D\n[8](../a.md#a)');
    expect(markdownPages(root).flatMap((page) => brokenLinks(root, page))).toEqual([
      'a.md: b.md',
      'a.md: #b',
      'a.md: c/d.md#e',
      'a.md: ../checkout',
    ]);
  });
});

function pagesAtRoot(): readonly string[] {
  return readdirSync(ROOT).filter((path) => path.endsWith('.md'));
}

function filesIn(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) =>
      join(entry.parentPath, entry.name)
        .slice(folder.length + 1)
        .split(sep)
        .join('/'),
    );
}

function npmPack(cwd: string, ...options: readonly string[]): void {
  execFileSync('npm', ['pack', ...options], { cwd, stdio: ['ignore', 'ignore', 'inherit'] });
}

function writeIn(folder: string, path: string, text: string): void {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  writeFileSync(join(folder, path), text);
}
