/** The files of the dashboard's page: a document, a script, a style and an icon. They hold no data, so they need no token. */

/// <reference path="./assets.d.ts" />
import { SCRIPT, STYLE } from 'dashboard:assets';
import { hashText } from '../../engine/base/bytes/hash.ts';
import { once } from '../../engine/base/once.ts';
import type { HttpCall } from '../call.ts';
import { etagOf } from '../reply/etag.ts';
import type { Reply } from '../reply/reply.ts';
import type { Route } from '../router.ts';

const HEADERS = {
  'content-security-policy': [
    ...["default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "img-src 'self' data:"],
    ...["base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'", "require-trusted-types-for 'script'"],
    "trusted-types 'none'",
  ].join('; '),
  'cross-origin-opener-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-robots-tag': 'noindex, nofollow',
} as const;

/** Every address is relative to the page, so it works below any path, also when a proxy removes a part of it. */
const DOCUMENT = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Ensembles</title>
<link rel="icon" href="icon.svg">
<link rel="stylesheet" href="style.css">
<script type="module" src="app.js"></script>
</head>
<body><div id="app"></div><noscript>This page needs JavaScript.</noscript></body>
</html>
`;

const ICON = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><rect width="16" height="16" rx="4" fill="#2457d6"/>
<path d="M3 5h4m-4 3h10m-6 3h6" stroke="#fff" stroke-width="2" stroke-linecap="round"/></svg>
`;

/** @param basePath - of the dashboard, such as `/dashboard`; empty at the root */
export function pageRoutes(basePath: string): readonly Route[] {
  const name = basePath.slice(basePath.lastIndexOf('/') + 1);
  const toFolder: Route = {
    ...{ method: 'GET', path: '', scope: 'public' },
    // Relative, because a proxy may have removed the begin of the path.
    run: () => ({ status: 308, headers: { location: `${name}/` } }),
  };
  return [
    ...(name === '' ? [] : [toFolder]),
    fileRoute('/', 'text/html; charset=utf-8', DOCUMENT),
    fileRoute('/app.js', 'text/javascript; charset=utf-8', SCRIPT),
    fileRoute('/style.css', 'text/css; charset=utf-8', STYLE),
    fileRoute('/icon.svg', 'image/svg+xml', ICON),
  ];
}

/** A browser asks each time whether the file has changed: a new version of the library must not meet an old script. */
function fileRoute(path: string, type: string, text: string): Route {
  const tag = once(() => etagOf(hashText(text)));
  const run = ({ request }: HttpCall): Reply => {
    const headers = { ...HEADERS, ...tag(), 'content-type': type, 'cache-control': 'no-cache' };
    if (request.header('if-none-match') === headers.etag) return { status: 304, headers };
    return { status: 200, html: text, headers };
  };
  return { method: 'GET', path, scope: 'public', run };
}
