/** The links of the built site, checked in the HTML that a reader gets. */

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, posix, sep } from 'node:path';

/**
 * @param dist - the folder of the built site
 * @param base - the folder of the server that the site is for, such as `/docs/`
 * @returns `page: link` for each link within the site that leads to no file or to no element with its anchor
 */
export function brokenLinks(dist, base) {
  const pages = readdirSync(dist, { recursive: true })
    .map((path) => path.split(sep).join('/'))
    .filter((path) => path.endsWith('.html') && path !== '404.html');
  const html = new Map(pages.map((page) => [page, readFileSync(join(dist, page), 'utf8')]));
  const ids = new Map(pages.map((page) => [page, new Set(attributes(html.get(page), 'id'))]));
  return pages.flatMap((page) =>
    [...new Set(attributes(html.get(page), 'href'))].flatMap((link) => {
      if (/^([a-z][a-z+.-]*:|\/\/)/i.test(link)) return [];
      const [path, anchor = ''] = link.split('#');
      const target = path === '' ? page : toFile(page, decodeURI(path), base);
      const found =
        target !== undefined &&
        (anchor === '' ? existsSync(join(dist, target)) : ids.get(target)?.has(decodeURIComponent(anchor)));
      return found ? [] : [`${page}: ${link}`];
    }),
  );
}

function toFile(page, path, base) {
  if (path.startsWith('/') && !path.startsWith(base)) return undefined;
  const file = path.startsWith('/') ? path.slice(base.length) : posix.join(posix.dirname(page), path);
  return file === '' || file.endsWith('/') ? `${file}index.html` : file;
}

function attributes(html, name) {
  return [...html.matchAll(new RegExp(`<[a-z][^>]*? ${name}="([^"]*)"`, 'g'))].map(([, value]) =>
    value.replaceAll('&amp;', '&').replaceAll('&quot;', '"').replaceAll('&#39;', "'"),
  );
}
