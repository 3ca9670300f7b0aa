/** The folders that the site is built from and in. */

import { fileURLToPath } from 'node:url';

const folder = (path) => fileURLToPath(new URL(path, import.meta.url));

export const ROOT = folder('..');
export const SITE = folder('.');
/** The pages as VitePress reads them, written by each build. */
export const PAGES = folder('.pages');
export const DIST = folder('dist');
