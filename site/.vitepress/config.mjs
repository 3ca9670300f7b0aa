/** The look of the site. Its pages and sidebars are derived from the project's Markdown: see site/build.mjs. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { defineConfig } from 'vitepress';
import { ROOT } from '../folders.mjs';
import { apiSidebar, docsSidebar } from '../sidebar.mjs';
import { slugify } from '../slugify.mjs';

const { name, version, description } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));

export default defineConfig({
  title: name,
  description,
  // No icon: browsers ask for none.
  head: [['link', { rel: 'icon', href: 'data:,' }]],
  srcDir: '.pages',
  outDir: 'dist',
  cacheDir: '.vitepress/cache',
  // The metadata of all pages in one file, and not in each page.
  metaChunk: true,
  // The index of the search is one file. It is loaded when somebody searches.
  vite: { build: { chunkSizeWarningLimit: 2000 } },
  markdown: {
    anchor: { slugify },
    // `{...}` at the end of a paragraph and `{{ ... }}` are text.
    attrs: { disable: true },
    config: ({ renderer: { rules } }) => {
      for (const kind of ['text', 'code_inline']) {
        const render = rules[kind];
        rules[kind] = (...args) => render(...args).replaceAll('{{', '&#123;&#123;');
      }
    },
  },
  themeConfig: {
    nav: [
      { text: 'Getting started', link: '/docs/getting-started' },
      { text: 'Documentation', link: '/docs/' },
      { text: 'Examples', link: '/examples/' },
      { text: 'API', link: '/api/' },
      { text: version, link: '/CHANGELOG' },
    ],
    sidebar: { '/api/': apiSidebar(), '/': docsSidebar() },
    outline: [2, 3],
    search: {
      provider: 'local',
      options: {
        miniSearch: {
          // A code such as ITERATION_LIMIT is one word.
          options: { tokenize: (text) => text.split(/(?:(?!_)[\s\p{Z}\p{P}])+/u) },
          // A page that somebody wrote comes before the API reference.
          searchOptions: { boostDocument: (id) => (id.includes('/api/') ? 0.2 : 1) },
        },
      },
    },
  },
});
