/** The dashboard with what is large, hostile or broken: 10,000 steps, values of anyone, a lost connection, a hidden tab. */

import type { Browser, Page, Request } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { scaled } from '../slowdown.ts';
import { hasBrowser, launch, show, visit } from './browser.ts';
import { type Demo, startDemo } from './demo.ts';

const HOSTILE = '<img src=x onerror="window.__hacked=1">\u202egnp.exe\u0000"\'`${7*7}';
const LARGE = 'x'.repeat(3 * 1024 * 1024);

const FLOWS = [
  `name: many
flow:
  - foreach: \${input.items}
    name: all
    concurrency: 100
    steps:
      - { agent: one, operation: code, config: { script: one }, input: { n: "\${item}" } }
`,
  `name: one-fails
flow:
  - foreach: \${input.items}
    name: all
    concurrency: 50
    steps:
      - { agent: check, operation: code, config: { script: check }, input: { n: "\${item}" } }
`,
  `name: hostile
flow:
  - { agent: values, operation: code, config: { script: values } }
  - { agent: failing, operation: code, config: { script: failing } }
`,
  `name: slow
flow:
  - { wait: go, name: gate }
  - { agent: after, operation: code, config: { script: one }, input: { n: 1 } }
`,
  `name: hanging
flow:
  - { agent: before, operation: code, config: { script: one }, input: { n: 1 } }
  - { agent: working, operation: code, config: { script: hang } }
`,
];

describe.skipIf(!hasBrowser)('the dashboard under load', () => {
  let endHanging: (value: string) => void = () => {};
  const hanging = new Promise<string>((resolve) => {
    endHanging = resolve;
  });
  let browser: Browser;
  let demo: Demo;
  let token: string;
  beforeAll(async () => {
    browser = await launch();
    demo = await startDemo({
      ensembles: FLOWS,
      scripts: {
        one: ({ input }) => input,
        hang: () => hanging,
        check: ({ input }) => {
          if ((input as { n: number }).n === 1500) throw new Error('item 1500 is odd');
        },
        values: () => ({ constructor: 1, toString: ['__proto__'], html: HOSTILE, large: LARGE }),
        failing: () => {
          throw new Error(HOSTILE);
        },
      },
    });
    token = await demo.token('admin');
  });
  afterAll(async () => {
    await browser?.close();
    await demo?.close();
  });

  it('opens an execution of 10,000 steps within a second, and scrolls it as easily as one of 500', async () => {
    const numbers = Array.from({ length: 10_000 }, (_, i) => i);
    const { id: shortId } = await demo.orchestrator.execute('many', { items: numbers.slice(0, 500) });
    const { id } = await demo.orchestrator.execute('many', { items: numbers });
    const { page, wrong } = await visit(browser, demo.url, token);
    const began = Date.now();
    await show(page, `/executions/${id}`);
    await page.locator('.rows .step').first().waitFor();
    const tookMs = Date.now() - began;
    await page.getByText('10,001', { exact: true }).waitFor({ timeout: 60_000 });
    const longMs = await frameOfScrolling(page);
    expect(await page.locator('.rows .step').count()).toBeLessThan(120);
    // The last row is drawn, and no space is left for rows below it.
    await expect
      .poll(() =>
        page
          .locator('.rows li')
          .last()
          .evaluate((row) => (row as HTMLElement).style.height),
      )
      .toBe('0px');
    await expect.poll(() => page.locator('.rows .step').last().evaluate(isInView)).toBe(true);
    expect(tookMs).toBeLessThan(scaled(1_000));
    const key = 'flow[0].foreach[9999].steps[0]';
    const askedAt = Date.now();
    expect(await demo.orchestrator.executions.stepInput(id, key)).toEqual({ key, input: { n: 9_999 } });
    expect(Date.now() - askedAt).toBeLessThan(scaled(1_000));
    await show(page, `/executions/${shortId}`);
    await page.getByText('501', { exact: true }).waitFor({ timeout: 60_000 });
    const shortMs = await frameOfScrolling(page);
    // The processor's time for a frame, side by side, because a busy machine needs more of it for the same work.
    expect(longMs / shortMs).toBeLessThan(1.7);
    expect(wrong).toEqual([]);
    await page.context().close();
  });

  it('shows hostile names, values and errors as text, opens a text of 3 MiB, and runs nothing of them', async () => {
    const { id } = await demo.orchestrator.execute('hostile', {}, { tags: ['<b>tag</b>', '__proto__'] });
    const { page, wrong } = await visit(browser, demo.url, token);
    await show(page, '/executions');
    await page.getByText('<b>tag</b>').waitFor();
    await show(page, `/executions/${id}?step=flow%5B1%5D`);
    await page.locator('.panel .failure').waitFor();
    expect(await page.locator('.panel .failure').innerText()).toContain(
      '<img src=x onerror="window.__hacked=1">\\u{202e}gnp.exe\\u{0}',
    );
    await show(page, `/executions/${id}?step=flow%5B0%5D`);
    const value = page.locator('.panel').getByRole('region', { name: 'Output' });
    await value.waitFor();
    expect(await value.innerText()).toMatch(/constructor: 1[\s\S]*html: "<img/);
    const began = Date.now();
    await value.getByRole('button', { name: /show more of 3,145,728 characters/ }).click();
    expect(await value.innerText()).toContain('x'.repeat(20_000));
    expect(Date.now() - began).toBeLessThan(scaled(1_000));
    for (const tab of ['flow', 'values', 'deliveries']) await show(page, `/executions/${id}?tab=${tab}`);
    expect(await page.evaluate(() => [Reflect.get(window, '__hacked'), Reflect.get({}, 'polluted')])).toEqual([
      undefined,
      undefined,
    ]);
    expect(wrong).toEqual([]);
    await page.context().close();
  });

  it('leads from the error of an execution to the item that failed, among 2,000', async () => {
    const { id } = await demo.orchestrator.execute('one-fails', { items: Array.from({ length: 2_000 }, (_, i) => i) });
    const { page, wrong } = await visit(browser, demo.url, token);
    await show(page, `/executions/${id}`);
    await page.getByRole('button', { name: 'Show the step that failed' }).click();
    await page.getByRole('complementary', { name: 'Step check' }).getByText('item 1500 is odd').waitFor();
    await expect.poll(() => page.locator('.rows .step.chosen').evaluate(isInView)).toBe(true);
    expect(wrong).toEqual([]);
    await page.context().close();
  });

  it('after a lost connection it continues where it was', async () => {
    const { id } = await demo.orchestrator.start('slow', {});
    const { page } = await visit(browser, demo.url, token);
    await show(page, `/executions/${id}`);
    await page.getByText('live', { exact: true }).waitFor();
    await page.context().setOffline(true);
    demo.dropConnections();
    await page.getByText('The connection is lost. Connecting again...').waitFor();
    await demo.orchestrator.executions.signal(id, 'go');
    await page.context().setOffline(false);
    await page.locator('.title .badge', { hasText: 'completed' }).waitFor({ timeout: 20_000 });
    await page.getByRole('button', { name: /agent after completed/ }).waitFor();
    await page.context().close();
  });

  it('an agent in its first attempt is shown as running, before anything of it is stored', async () => {
    const { id } = await demo.orchestrator.start('hanging', {});
    const { page } = await visit(browser, demo.url, token);
    await show(page, `/executions/${id}`);
    const row = page.getByRole('button', { name: /agent working running/ });
    await row.click();
    await page.getByRole('complementary').getByText('{ 0 fields }').waitFor();
    // Its time grows.
    await expect.poll(() => row.innerText(), { timeout: 10_000 }).toMatch(/[2-9]\.\d s/);
    const stopped = await demo.orchestrator.start('hanging', {});
    await demo.orchestrator.executions.cancel(stopped.id);
    await show(page, `/executions/${stopped.id}`);
    await page.getByRole('button', { name: 'Show the step that was stopped' }).click();
    await expect.poll(() => page.getByRole('complementary', { name: 'Step working' }).evaluate(isFocused)).toBe(true);
    await page.keyboard.press('Escape');
    await show(page, `/executions/${id}`);
    endHanging('done');
    await page.getByRole('button', { name: /agent working completed/ }).waitFor();
    await page.context().close();
  });

  it('an open list sends one request in 5 seconds, and none while the tab is hidden', async () => {
    const { page } = await visit(browser, demo.url, token);
    await show(page, '/executions');
    await page.getByText('Read every 5.0 s.').waitFor();
    await page.waitForLoadState('networkidle');
    let requests: Request[] = [];
    page.on('request', (request) => {
      requests.push(request);
    });
    await page.waitForTimeout(11_000);
    expect(requests.length).toBeGreaterThanOrEqual(1);
    // By the browser's clock: on a busy machine, the 11 s of the test may be longer.
    const times = requests.map((request) => request.timing().startTime);
    for (const [at, time] of times.slice(1).entries()) expect(time - (times[at] ?? 0)).toBeGreaterThan(4_900);
    await setHidden(page, true);
    await page.waitForTimeout(500);
    requests = [];
    await page.waitForTimeout(7_000);
    expect(requests).toEqual([]);
    await setHidden(page, false);
    await expect.poll(() => requests.length).toBe(1);
    await page.context().close();
  });
});

/**
 * Scrolls the list for two seconds, 5,000 rows in each, up and down where it is shorter, and then to its end.
 * @returns what a frame takes of the page's processor time, in ms
 */
async function frameOfScrolling(page: Page): Promise<number> {
  const session = await page.context().newCDPSession(page);
  await session.send('Performance.enable', { timeDomain: 'threadTicks' });
  const taskMs = async () => {
    const { metrics } = await session.send('Performance.getMetrics');
    return 1000 * (metrics.find(({ name }) => name === 'TaskDuration')?.value ?? 0);
  };
  const before = await taskMs();
  const frames = await page.evaluate(async () => {
    const rows = document.querySelector('.rows') as HTMLElement;
    const began = performance.now();
    let count = 0;
    while (performance.now() - began < 2_000) {
      const way = rows.scrollHeight - rows.clientHeight;
      const passed = (performance.now() - began) * 140;
      rows.scrollTop = Math.floor(passed / way) % 2 === 0 ? passed % way : way - (passed % way);
      await new Promise((resolve) => requestAnimationFrame(resolve));
      count += 1;
    }
    rows.scrollTop = rows.scrollHeight;
    return count;
  });
  const spent = (await taskMs()) - before;
  await session.detach();
  return spent / frames;
}

/** Whether an element is inside the list around it. */
function isInView(element: Element): boolean {
  const list = element.closest('.rows')?.getBoundingClientRect();
  const own = element.getBoundingClientRect();
  return list !== undefined && own.top >= list.top && own.bottom <= list.bottom + 1;
}

function isFocused(element: Element): boolean {
  return element === document.activeElement;
}

/** As a browser does when another tab is shown. */
async function setHidden(page: Page, isHidden: boolean): Promise<void> {
  await page.evaluate((hidden) => {
    Object.defineProperty(document, 'hidden', { configurable: true, value: hidden });
    document.dispatchEvent(new Event('visibilitychange'));
  }, isHidden);
}
