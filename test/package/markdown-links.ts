/** The relative links of Markdown pages, and whether they lead to a file and a heading that exist. */

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, sep } from 'node:path';

/** @returns paths relative to the folder, with `/` */
export function markdownPages(root: string): readonly string[] {
  return readdirSync(root, { recursive: true, encoding: 'utf8' })
    .map((path) => path.split(sep).join('/'))
    .filter((path) => path.endsWith('.md'))
    .sort();
}

/** @returns `page: link` for each link that leads nowhere below the root */
export function brokenLinks(root: string, page: string): readonly string[] {
  return relativeLinks(readPage(root, page)).flatMap((link) => {
    const [target = '', anchor] = link.split('#');
    const file = target === '' ? page : join(dirname(page), decodeURIComponent(target));
    const inside = !file.startsWith('..') && existsSync(join(root, file));
    const found = inside && (anchor === undefined || !file.endsWith('.md') || hasAnchor(root, file, anchor));
    return found ? [] : [`${page}: ${link}`];
  });
}

export function relativeLinks(text: string): readonly string[] {
  const prose = withoutFences(text).replace(/(`+)[^`][\s\S]*?\1/g, '');
  const inline = [...prose.matchAll(/\]\(<?([^)\s>]+)[^)]*\)/g)];
  const references = [...prose.matchAll(/^ {0,3}\[[^\]]+\]:\s+<?([^\s>]+)/gm)];
  return [...inline, ...references]
    .map(([, link = '']) => link)
    .filter((link) => !/^([a-z][a-z+.-]*:|\/\/)/i.test(link));
}

function hasAnchor(root: string, page: string, anchor: string): boolean {
  return anchorsOf(readPage(root, page)).includes(anchor);
}

/** The anchors of a page, as code hosts and the site make them from headings. A repeated heading gets a number. */
export function anchorsOf(text: string): readonly string[] {
  const counts = new Map<string, number>();
  return [...withoutFences(text).matchAll(/^#{1,6} +(.*?) *#*$/gm)].map(([, heading = '']) => {
    const slug = heading
      .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replace(/ /g, '-');
    const count = counts.get(slug) ?? 0;
    counts.set(slug, count + 1);
    return count === 0 ? slug : `${slug}-${count}`;
  });
}

function withoutFences(text: string): string {
  return text.replace(/^( *)(`{3,})[^`\n]*\n[\s\S]*?^ *\2`* *$/gm, '');
}

function readPage(root: string, page: string): string {
  return readFileSync(join(root, page), 'utf8');
}
