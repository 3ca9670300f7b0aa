/** The pages of the site: the project's Markdown with its links rewritten, and the files of each example. */

import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { extname, join, posix } from 'node:path';
import { ROOT } from './folders.mjs';
import { slugify } from './slugify.mjs';

/** The files to which pages link, besides pages. The build copies them. */
export const FILES = ['docs/images', 'docs/grafana-dashboard.json'];
const PAGES_AT_ROOT = ['README.md', 'ARCHITECTURE.md', 'CHANGELOG.md', 'CONTRIBUTING.md'];

/**
 * The site has the folders of the repository. A README.md is the index of its folder.
 *
 * @returns each page's path below the site's root, and its text
 */
export function readPages() {
  const sources = [...PAGES_AT_ROOT, ...docsPages(), 'examples/README.md'];
  return [
    ...sources.map((source) => ({ path: pagePath(source), text: rewrite(source) })),
    ...examples().map((folder) => ({ path: `${folder}/index.md`, text: examplePage(folder) })),
  ];
}

/** The pages below docs/ that somebody wrote. */
export function docsPages() {
  return filesIn('docs').filter((path) => path.endsWith('.md') && !path.startsWith('docs/api/'));
}

/** Where a page of the repository is on the site: `docs/README.md` is `/docs/index.md`. */
export function pagePath(source) {
  return source.replace(/(^|\/)README\.md$/, '$1index.md');
}

/** @returns the first heading of a page of the repository, as text */
export function readTitle(source) {
  const [, title] = /^# +(.+?) *$/m.exec(readFileSync(join(ROOT, source), 'utf8')) ?? [];
  if (title === undefined) throw new Error(`${source} has no title: it begins with \`# \``);
  return title.replaceAll('`', '');
}

/**
 * Resolves a link of a page of the repository to a page of the site.
 *
 * @param source - the page that has the link
 * @throws Error for a link to what the site does not show
 */
export function resolveLink(source, link) {
  if (/^([a-z][a-z+.-]*:|\/\/)/i.test(link)) return link;
  const [path, anchor] = link.split('#');
  const hash = anchor === undefined ? '' : `#${anchor}`;
  const target = path === '' ? source : posix.join(posix.dirname(source), decodeURIComponent(path)).replace(/\/$/, '');
  if (!existsSync(join(ROOT, target))) throw new Error(`${source}: ${link} leads to no file`);
  if (FILES.some((path) => target === path || target.startsWith(`${path}/`))) return `/${target}`;
  if (isPage(target)) return `/${pagePath(target)}${hash}`;
  const [, folder, inside] = /^(examples\/[^/]+)(?:\/(.+))?$/.exec(target) ?? [];
  if (folder !== undefined && inside === undefined) return `/${folder}/index.md${hash}`;
  const file = folder && filesIn(folder).find((name) => name === target || name.startsWith(`${target}/`));
  if (!file) throw new Error(`${source}: ${link} leads to a file that the site does not show`);
  return `/${folder}/index.md#${slugify(file.slice(folder.length + 1))}`;
}

function isPage(path) {
  return PAGES_AT_ROOT.includes(path) || /^(docs|examples)\/.*\.md$/.test(path);
}

/** The text of a page with links to pages of the site, and with code blocks that name their language alone. */
function rewrite(source) {
  const text = readFileSync(join(ROOT, source), 'utf8');
  // Every second part is a code block.
  const parts = text.split(/^( *`{3,}[^`\n]*\n[\s\S]*?^ *`{3,} *$)/m);
  return parts
    .map((part, i) => (i % 2 === 1 ? part.replace(/^( *`{3,} *[\w-]*).*/, '$1') : rewriteLinks(source, part)))
    .join('');
}

function rewriteLinks(source, prose) {
  return prose.replace(/(`+)(?:(?!\n\n)[\s\S])*?(?<!`)\1(?!`)|\]\(([^)\s]+)\)/g, (found, _ticks, link) =>
    link === undefined ? found : `](${resolveLink(source, link)})`,
  );
}

function examples() {
  return readdirSync(join(ROOT, 'examples'))
    .filter((name) => statSync(join(ROOT, 'examples', name)).isDirectory())
    .map((name) => `examples/${name}`);
}

/** The README of an example, if there is one, and then the text of each of its files. */
function examplePage(folder) {
  const readme = `${folder}/README.md`;
  const head = existsSync(join(ROOT, readme)) ? rewrite(readme) : `# ${folder.slice('examples/'.length)}\n`;
  const files = filesIn(folder).filter((path) => path !== readme);
  const sections = files.map((path) => {
    const language = extname(path).slice(1).replace('mjs', 'js');
    return `### ${path.slice(folder.length + 1)}\n\n~~~~${language}\n${readFileSync(join(ROOT, path), 'utf8').trimEnd()}\n~~~~\n`;
  });
  return `${head}\n## Files\n\n${sections.join('\n')}`;
}

/** The files below a folder of the repository that are not hidden, in order. */
function filesIn(folder) {
  return readdirSync(join(ROOT, folder), { withFileTypes: true })
    .filter(({ name }) => !name.startsWith('.') && name !== 'node_modules')
    .sort((a, b) => Number(a.isDirectory()) - Number(b.isDirectory()) || a.name.localeCompare(b.name, 'en'))
    .flatMap((entry) => (entry.isDirectory() ? filesIn(`${folder}/${entry.name}`) : [`${folder}/${entry.name}`]));
}
