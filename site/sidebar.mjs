/** The sidebars. Their one source is docs/README.md: each heading is a group, and each link of its table is an entry. */

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PAGES, ROOT } from './folders.mjs';
import { docsPages, pagePath, readTitle, resolveLink } from './read-pages.mjs';

const OVERVIEW = 'docs/README.md';
const DECISIONS = /^docs\/decisions\//;

/** @throws Error when a page below docs/ is in no table of docs/README.md */
export function docsSidebar() {
  const groups = readGroups(readFileSync(join(ROOT, OVERVIEW), 'utf8'));
  const listed = groups.flatMap(({ items }) => items.map(({ link }) => link.slice(1)));
  const missing = docsPages().filter(
    (path) => path !== OVERVIEW && !DECISIONS.test(path) && !listed.includes(pagePath(path)),
  );
  if (missing.length > 0) throw new Error(`${OVERVIEW} lists no link to ${missing.join(', ')}`);
  const decisions = docsPages().filter((path) => DECISIONS.test(path));
  return [
    {
      text: 'Overview',
      items: [
        { text: 'Introduction', link: '/' },
        { text: 'All pages', link: '/docs/' },
      ],
    },
    ...groups.map(({ text, items }) => ({ text, items: items.map(withoutIndex), collapsed: false })),
    {
      text: 'Project',
      collapsed: false,
      items: ['CHANGELOG.md', 'CONTRIBUTING.md'].map((path) => ({ text: readTitle(path), link: `/${path}` })),
    },
    {
      text: 'All decisions',
      collapsed: true,
      items: decisions.map((path) => withoutIndex({ text: readTitle(path), link: `/${pagePath(path)}` })),
    },
  ];
}

/** The headings of the second level, and the links in the first column of their tables. */
export function readGroups(text) {
  const sections = text.split(/^## /m).slice(1);
  const groups = sections.map((section) => ({
    text: section.split('\n', 1)[0].trim(),
    items: section
      .split('\n')
      .filter((line) => line.startsWith('|'))
      .flatMap((row) => readEntries(row.split(/(?<!\\)\|/)[1])),
  }));
  if (groups.length === 0 || groups.some(({ items }) => items.length === 0))
    throw new Error(`${OVERVIEW}: every heading of the second level has a table with links in its first column`);
  return groups;
}

/** One entry for each link of a cell. Words ahead of several links are in front of each: `Operations: [a](a.md), [b](b.md)`. */
function readEntries(cell) {
  const links = [...cell.matchAll(/\[([^\]]+)\]\(([^)\s]+)\)/g)];
  const words = cell.split('[', 1)[0].trim();
  return links.map(([, text, link]) => ({
    text: [words, text.replaceAll('`', '')].filter((part) => part !== '').join(' '),
    link: resolveLink(OVERVIEW, link),
  }));
}

/** The API reference: one group for each entry of the package, with the names that it exports. */
export function apiSidebar() {
  const root = join(PAGES, 'api');
  const modules = [...readFileSync(join(root, 'index.md'), 'utf8').matchAll(/^- \[([^\]]+)\]\(([^)]+)\)/gm)];
  return [
    { text: 'API reference', link: '/api/' },
    ...modules.map(([, text, link]) => {
      const folder = link.replace(/\/index\.md$/, '');
      // The entry `ensemble-orchestrator/node` is `/node`.
      return {
        text: text.replace(/^.*(?=\/)/, ''),
        link: `/api/${folder}/`,
        collapsed: true,
        items: kinds(root, folder),
      };
    }),
  ];
}

/** The kinds of names of one module: functions, classes, types. */
function kinds(root, folder) {
  const order = ['functions', 'classes', 'variables', 'interfaces', 'type-aliases'];
  return order
    .filter((kind) => existsSync(join(root, folder, kind)))
    .map((kind) => ({
      text: kind.replace(/^./, (letter) => letter.toUpperCase()).replace('-', ' '),
      collapsed: true,
      items: readdirSync(join(root, folder, kind))
        .sort((a, b) => a.localeCompare(b, 'en'))
        .map((file) => ({ text: file.replace(/\.md$/, ''), link: `/api/${folder}/${kind}/${file}` })),
    }));
}

function withoutIndex({ text, link }) {
  return { text, link: link.replace(/(^|\/)index\.md$/, '$1') };
}
