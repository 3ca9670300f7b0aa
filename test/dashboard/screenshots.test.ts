/** Draws the pictures of the docs: `SCREENSHOTS=1 npx vitest run test/dashboard/screenshots`. */

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { it } from 'vitest';
import { hasBrowser, launch, show, visit } from './browser.ts';
import { fillDemo, startDemo } from './demo.ts';

const FOLDER = join(import.meta.dirname, '../../docs/images');

it.skipIf(!hasBrowser || !process.env.SCREENSHOTS)('the pictures of the docs', async () => {
  mkdirSync(FOLDER, { recursive: true });
  const [demo, browser] = await Promise.all([startDemo(), launch()]);
  const { done, waiting } = await fillDemo(demo);
  const token = await demo.token('admin');
  const draw = async (name: string, address: string, colorScheme: 'light' | 'dark' = 'light') => {
    const viewport = { width: 1200, height: 720 };
    const { page } = await visit(browser, demo.url, token, { colorScheme, viewport });
    await show(page, address);
    await page.waitForTimeout(1500);
    await page.screenshot({ path: join(FOLDER, `${name}.png`) });
    await page.context().close();
  };
  await draw('dashboard-home', '/');
  await draw('dashboard-execution', `/executions/${done}?step=flow%5B3%5D.parallel%5B0%5D`);
  await draw('dashboard-flow', `/executions/${waiting}?tab=flow`);
  await draw('dashboard-component-dark', '/components/greeting?with=v1.0.0', 'dark');
  await browser.close();
  await demo.close();
});
