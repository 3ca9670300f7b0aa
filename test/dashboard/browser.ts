/** A real browser on the dashboard, which notes everything that a page must not do. */

import { existsSync } from 'node:fs';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';

const BROWSERS = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];
const executablePath = BROWSERS.find((path) => existsSync(path));

/** On a computer without a browser, the tests are left out, and say so. */
export const hasBrowser = executablePath !== undefined;
if (!hasBrowser) console.warn('no Chromium is installed: the tests of the dashboard in a browser are left out');

export function launch(): Promise<Browser> {
  return chromium.launch({ ...(executablePath && { executablePath }), args: ['--no-sandbox'] });
}

export interface Visit {
  readonly page: Page;
  /** Errors of scripts, violations of the policy, and requests to other origins. */
  readonly wrong: string[];
}

/** @param url - of the dashboard @param token - signs in with it */
export async function visit(
  browser: Browser,
  url: string,
  token?: string,
  options: BrowserContextOptions = {},
): Promise<Visit> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 850 }, ...options });
  const page = await context.newPage();
  const wrong: string[] = [];
  page.on('pageerror', (error) => wrong.push(`error: ${error.message}`));
  page.on('request', (request) => {
    if (!request.url().startsWith(new URL(url).origin)) wrong.push(`request: ${request.url()}`);
  });
  page.on('console', (message) => {
    // A refused call is an answer that the page shows.
    if (message.type() === 'error' && !/status of (?:401|403|404|409)|ERR_CONNECTION|ERR_INTERNET/.test(message.text()))
      wrong.push(`console: ${message.text()}`);
  });
  await page.goto(url);
  if (token !== undefined) {
    await page.getByLabel('API token').fill(token);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('navigation', { name: 'Screens' }).waitFor();
  }
  return { page, wrong };
}

/** Shows a screen by its address, such as `/executions`. */
export async function show(page: Page, address: string): Promise<void> {
  await page.evaluate((hash) => {
    location.hash = hash;
  }, `#${address}`);
}
