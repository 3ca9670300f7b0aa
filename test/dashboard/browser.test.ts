/** The dashboard in a real browser: what a person sees and does on each screen. */

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { hasBrowser, launch, show, type Visit, visit } from './browser.ts';
import { type Demo, fillDemo, startDemo } from './demo.ts';

const ONE_SCRIPT = { name: 'import', flow: [{ agent: 'download', operation: 'code', config: { script: 'fail' } }] };
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

describe.skipIf(!hasBrowser)('the dashboard in a browser', () => {
  let browser: Browser;
  let demo: Demo;
  let ids: Awaited<ReturnType<typeof fillDemo>>;
  let admin: string;
  const visits: Visit[] = [];
  /** @param token - null: does not sign in */
  const open = async (token: string | null = admin, options?: BrowserContextOptions) => {
    const opened = await visit(browser, demo.url, token ?? undefined, options);
    visits.push(opened);
    return opened;
  };
  beforeAll(async () => {
    browser = await launch();
    demo = await startDemo();
    ids = await fillDemo(demo);
    admin = await demo.token('admin');
  });
  afterEach(async () => {
    for (const { page, wrong } of visits.splice(0)) {
      expect(wrong).toEqual([]);
      await page.context().close();
    }
  });
  afterAll(async () => {
    await browser?.close();
    await demo?.close();
  });
  const text = (page: Page) => page.locator('main').innerText();

  it('asks for a token, refuses a wrong one, and forgets it on sign-out', async () => {
    const { page } = await open(null);
    await page.getByLabel('API token').fill('wrong');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('alert').waitFor();
    expect(await page.getByRole('alert').innerText()).toContain('UNAUTHORIZED');
    await page.getByLabel('API token').fill(admin);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('navigation', { name: 'Screens' }).waitFor();
    await page.reload();
    await page.getByRole('navigation', { name: 'Screens' }).waitFor();
    expect(page.url()).not.toContain(admin);
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByLabel('API token').waitFor();
    expect(await page.evaluate(() => sessionStorage.length)).toBe(0);
  });

  it('shows and offers only what the scopes of the caller allow', async () => {
    const { page } = await open(await demo.token('read:executions'));
    expect(await page.getByRole('navigation', { name: 'Screens' }).innerText()).toBe(
      ['Home', 'Executions', 'Deliveries', 'Settings'].join('\n'),
    );
    await show(page, `/executions/${ids.waiting}`);
    await page.getByText('for the signal').waitFor();
    expect(await page.getByRole('button', { name: 'Cancel' }).count()).toBe(0);
    expect(await page.getByRole('button', { name: 'Send approved' }).count()).toBe(0);
    await show(page, '/ensembles');
    await page.getByText('This screen needs the scope read:ensembles.').waitFor();
  });

  it('home says what is wrong now: the failed execution with its reason, and the receiver that fails', async () => {
    const { page } = await open();
    await page.getByText('Receivers that fail').waitFor();
    expect(await text(page)).toContain('the file server answered 503 Service Unavailable');
    expect(await text(page)).toContain('http://127.0.0.1:9/hook');
  });

  it('home is not green while an older failure was not retried, however many newer ones were', async () => {
    const peer = { isDown: true };
    const fail = () => {
      if (peer.isDown) throw new Error('the file server is away');
      return {};
    };
    const own = await startDemo({ ensembles: [ONE_SCRIPT], scripts: { fail } });
    const retry = async (id: string) => {
      peer.isDown = false;
      await (await own.orchestrator.executions.retry(id)).result();
      peer.isDown = true;
    };
    try {
      const { orchestrator } = own;
      const { id: old } = await orchestrator.execute('import');
      const { page, wrong } = await visit(browser, own.url, await own.token('admin'));
      for (let nr = 0; nr < 9; nr++) {
        const { id } = await orchestrator.execute('import');
        await retry(id);
      }
      await page.reload();
      await page.getByText('10 executions failed, for 1 cause').waitFor();
      await page.getByText('failed or timed out in all').waitFor();
      expect(await text(page)).toContain('1 failed or timed out in all, and was not retried.');
      await page.getByRole('main').getByRole('link', { name: '1', exact: true }).click();
      await page.getByRole('button', { name: 'failed and not retried' }).waitFor();
      await page.getByRole('link', { name: old }).waitFor();
      expect(await page.locator('tbody tr').count()).toBe(1);
      await retry(old);
      await show(page, '/');
      await page.getByText('No execution failed without a retry.').waitFor();
      expect(wrong).toEqual([]);
      await page.context().close();
    } finally {
      await own.close();
    }
  });

  it.each([1280, 390])(
    'home shows four causes of three ensembles with their exact counts, the most frequent first, at a width of %i',
    async (width) => {
      const named = ['checkout', 'import', 'report'].map((name) => ({
        ...{ name, flow: [{ agent: 'work', operation: 'code', config: { script: 'work' }, input: '${input}' }] },
      }));
      const work = ({ input }: { readonly input: unknown }) => {
        const { why } = input as { readonly why?: string };
        if (why) throw new Error(why);
        return {};
      };
      const own = await startDemo({ ensembles: named, scripts: { work } });
      try {
        const { orchestrator } = own;
        const run = async (ensemble: string, times: number, why?: (nr: number) => string) => {
          for (let nr = 1; nr <= times; nr++) await orchestrator.execute(ensemble, why ? { why: why(nr) } : {});
        };
        await run('checkout', 30);
        await run('checkout', 12, () => 'the bank answered 422: currency is required');
        await run('import', 7, (nr) => `row ${nr} of "orders-${nr}.csv" is empty`);
        await run('import', 2, () => 'no space is left');
        await run('report', 4, (nr) => `the font was not found after ${nr}.5 s`);
        const { page, wrong } = await visit(browser, own.url, await own.token('admin'), {
          viewport: { width, height: 844 },
        });
        await page.getByText('25 executions failed, for 4 causes').waitFor();
        await page.getByText('Of 55 that ended in the last 24 hours. Exact.').waitFor();
        const causes = await page.locator('.causes li').allInnerTexts();
        const about = causes.map((cause) => cause.replaceAll(/\s+/g, ' '));
        const expected = [
          [/^checkout AGENT_FAILED .*the bank answered 422: currency is required/, /12 29 % of 42/],
          [/^import AGENT_FAILED .*row ‹number› of ‹text› is empty/, /7 78 % of 9/],
          [/^report AGENT_FAILED .*the font was not found after ‹number› s/, /4 100 % of 4/],
          [/^import AGENT_FAILED .*no space is left/, /2 22 % of 9/],
        ];
        expect(about.length).toBe(4);
        for (const [at, [what, number]] of expected.entries()) {
          expect(about[at]).toMatch(what as RegExp);
          expect(about[at]).toMatch(number as RegExp);
        }
        // Each message stands in its row.
        for (const row of await page.locator('.causes li').all()) {
          const [outer, inner] = [await row.boundingBox(), await row.locator('.why').boundingBox()];
          expect(inner && outer && inner.y >= outer.y && inner.y + inner.height <= outer.y + outer.height).toBe(true);
        }
        const isSeen = await page
          .locator('.causes li')
          .last()
          .evaluate((one) => one.getBoundingClientRect().bottom);
        expect(isSeen).toBeLessThanOrEqual(844);
        expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(width);
        await page.getByRole('button', { name: '1 hour' }).click();
        await page.getByText('25 executions failed, for 4 causes').waitFor();
        expect(page.url()).toContain('period=hour');
        await page.getByRole('link', { name: 'All with AGENT_FAILED' }).first().click();
        await page.getByText('checkout').first().waitFor();
        expect(await page.locator('tbody tr').count()).toBe(12);
        expect(wrong).toEqual([]);
        await page.context().close();
      } finally {
        await own.close();
      }
    },
  );

  it('the list keeps every filter in the address, Back removes the last one, and new executions appear', async () => {
    const { page } = await open();
    await show(page, '/executions');
    await page.getByLabel('Status').selectOption('failed');
    await page.getByRole('link', { name: ids.failed }).waitFor();
    expect(page.url()).toContain('#/executions?status=failed');
    expect(await page.locator('tbody tr').count()).toBe(1);
    await page.getByLabel('Tag', { exact: true }).fill('nobody');
    await page.getByLabel('Tag', { exact: true }).blur();
    await page.getByText('No execution matches').waitFor();
    await page.goBack();
    await page.getByRole('link', { name: ids.failed }).waitFor();
    await page.getByRole('link', { name: 'AGENT_FAILED' }).click();
    expect(page.url()).toContain('#/executions?status=failed&errorCode=AGENT_FAILED');
    await page.getByLabel('Order').selectOption('oldest');
    await page.getByRole('link', { name: ids.failed }).waitFor();
    expect(await page.locator('tbody tr').count()).toBe(1);
    const { id } = await demo.orchestrator.execute('nightly-import', {});
    await page.getByRole('link', { name: id }).waitFor({ timeout: 10_000 });
  });

  it('one execution: why it failed first; its steps, their outputs, calls of models with tokens, and its flow', async () => {
    const { page } = await open();
    await show(page, `/executions/${ids.failed}`);
    await page.locator('.failure').waitFor();
    expect(await page.locator('.failure').innerText()).toMatch(
      /AGENT_FAILED in agent download\s+the file server answered 503/,
    );

    await show(page, `/executions/${ids.done}`);
    await page.getByRole('button', { name: /agent letter completed/ }).click();
    const panel = page.getByRole('complementary', { name: 'Step letter' });
    expect(await panel.innerText()).toMatch(/model small\s+\d+ ms, \d+ \+ \d+ tokens/);
    expect(await panel.innerText()).toContain('Dear customer, thank you for your order.');
    await panel.getByText('customer: "Ada"').waitFor();
    await page.getByRole('link', { name: 'Flow' }).click();
    await page.getByRole('button', { name: /pack completed.*3 of 3/ }).click();
    await page.getByRole('complementary', { name: 'Step pack' }).waitFor();
    await page.getByRole('link', { name: 'Children' }).click();
    await page.locator('tbody').getByText('ship', { exact: true }).waitFor();
  });

  it('a waiting execution: the form sends the signal, and the page shows the rest of the run without a reload', async () => {
    const { id } = await demo.orchestrator.start('order', { customer: 'Lin', quantity: 8 });
    const { page } = await open();
    await show(page, `/executions/${id}`);
    await page.getByRole('button', { name: 'Send approved' }).click();
    await page.getByLabel('Payload, as JSON').fill('{ "by": ');
    await page.getByRole('button', { name: 'Send it' }).click();
    expect(await page.getByRole('alert').innerText()).toContain('the payload is not JSON');
    await page.getByLabel('Payload, as JSON').fill('{ "by": "Ada" }');
    await page.getByRole('button', { name: 'Send it' }).click();
    await page.locator('.title .badge', { hasText: 'completed' }).waitFor({ timeout: 10_000 });
    await page.getByRole('button', { name: /agent charge completed/ }).waitFor();
  });

  it('a retry leads to the new execution, and a cancel ends one', async () => {
    const { page } = await open();
    await show(page, `/executions/${(await demo.orchestrator.execute('nightly-import', {})).id}`);
    await page.getByRole('button', { name: 'Retry' }).click();
    await page.getByRole('button', { name: 'Retry it' }).click();
    await page.getByText('Retry of').waitFor();
    const { id } = await demo.orchestrator.start('order', { customer: 'Kay', quantity: 8 });
    await show(page, `/executions/${id}`);
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.getByRole('button', { name: 'Cancel it' }).click();
    await page.locator('.title .badge', { hasText: 'cancelled' }).waitFor({ timeout: 10_000 });
  });

  it('all that match a filter are retried as a job, which lists how many', async () => {
    await demo.orchestrator.execute('nightly-import', {}, { tags: ['bulk'] });
    const { page } = await open();
    await show(page, '/executions');
    await show(page, '/executions?tag=bulk&status=failed');
    await page.getByRole('button', { name: 'Retry all that match' }).click();
    // The question keeps its filter, whatever the list shows.
    await page.evaluate(() => history.back());
    await page.getByRole('dialog').getByText('status failed').waitFor();
    await page.getByRole('dialog').getByText('tag bulk').waitFor();
    await page.getByRole('button', { name: 'Retry executions now' }).click();
    await page.getByText(/1 execution retried/).waitFor({ timeout: 10_000 });
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Jobs' }).click();
    await page.getByText(/1 retried, 0 failed.*by ada/).waitFor();
    await page.getByRole('dialog').getByRole('button', { name: 'Retry executions' }).click();
    await page.getByText(/1 execution retried/).waitFor();
  });

  it('a description shows what it hides: direction marks of an ensemble and of an input have their codes', async () => {
    const described = {
      name: 'described',
      description: 'pays \u202enobody\u202c',
      inputs: { to: { type: 'string', description: 'who \u2066gets it\u2069' } },
      flow: [],
    };
    const own = await startDemo({ ensembles: [described] });
    try {
      const { page } = await visit(browser, own.url, await own.token('admin'));
      await show(page, '/ensembles/described');
      await page.getByText('pays \\u{202e}nobody\\u{202c}').first().waitFor();
      await page.getByRole('button', { name: 'Start', exact: true }).click();
      await page.getByText('who \\u{2066}gets it\\u{2069}').first().waitFor();
      await page.context().close();
    } finally {
      await own.close();
    }
  });

  it('a signal with a form has an input for each of its fields, and a payload that does not fit is refused in the dialog', async () => {
    const fields = {
      type: 'object',
      required: ['decision'],
      properties: {
        decision: { enum: ['pay', 'refuse'], title: 'Decision' },
        cents: { type: 'integer', minimum: 1, default: 100 },
        urgent: { type: 'boolean' },
        lines: { type: 'array' },
      },
    };
    const wait = { wait: 'decision', name: 'answer', title: 'Pay the order back?', text: 'It is late.', fields };
    const own = await startDemo({
      ensembles: [{ name: 'refund', flow: [wait], outputs: { answer: '${answer.output}' } }],
      scripts: {},
    });
    try {
      const { id } = await own.orchestrator.start('refund');
      const { page, wrong } = await visit(browser, own.url, await own.token('admin'));
      await show(page, `/executions/${id}`);
      await page.getByRole('button', { name: 'Send decision' }).click();
      await page.getByRole('heading', { name: 'Pay the order back?' }).waitFor();
      await page.getByText('It is late.').waitFor();
      await page.getByLabel('Decision (required)').selectOption('pay');
      await page.getByLabel('cents').fill('0');
      await page.getByLabel('lines, as JSON').fill('["a"]');
      await page.getByRole('button', { name: 'Send it' }).click();
      expect(await page.getByRole('alert').innerText()).toContain('`cents` must be at least 1, not 0');
      await page.getByLabel('cents').fill('5');
      await page.getByRole('button', { name: 'Send it' }).click();
      await page.locator('.title .badge', { hasText: 'completed' }).waitFor({ timeout: 10_000 });
      const { output } = await own.orchestrator.executions.get(id);
      expect(output).toEqual({ answer: { decision: 'pay', cents: 5, lines: ['a'] } });
      expect(wrong.filter((one) => !one.includes('status of 400'))).toEqual([]);
      await page.context().close();
    } finally {
      await own.close();
    }
  });

  it('an ensemble is started with a form made from its inputs', async () => {
    const { page } = await open();
    await show(page, '/ensembles/order');
    await page.getByText('webhook').first().waitFor();
    await page.getByRole('button', { name: 'Start', exact: true }).click();
    await page.getByLabel('customer (required)').fill('Ada');
    await page.getByLabel('quantity').fill('1');
    await page.getByRole('button', { name: 'Start it' }).click();
    await page.locator('.title .badge', { hasText: 'completed' }).waitFor({ timeout: 10_000 });
    await page.getByRole('link', { name: 'Input and output' }).click();
    await page.getByText('customer: "Ada"').waitFor();
  });

  it('a dry run of an ensemble shows its plan, and is marked in the list', async () => {
    const { page } = await open();
    await show(page, '/ensembles/order');
    await page.getByRole('button', { name: 'Dry run' }).click();
    await page.getByLabel('customer (required)').fill('Dry Ada');
    await page.getByRole('button', { name: 'Show what would happen' }).click();
    await page.getByRole('link', { name: 'Plan' }).waitFor();
    await page.getByText('Nothing of this has happened.').waitFor();
    expect(await page.locator('.title').innerText()).toContain('dry run');
    expect(await page.getByRole('link', { name: 'Time line' }).count()).toBe(0);
    expect(await text(page)).toContain('flow[0]');
    await show(page, '/executions');
    await page.locator('.tag', { hasText: 'dry run' }).first().waitFor();
    if (process.env.SHOTS) {
      await page.goBack();
      await page.getByText('Nothing of this has happened.').waitFor();
      await page.screenshot({ path: `${process.env.SHOTS}/plan.png`, fullPage: true });
    }
  });

  it('a schedule is paused, resumed and run now', async () => {
    const { page } = await open();
    await show(page, '/schedules');
    const row = page.getByRole('row', { name: /nightly-import/ });
    await row.getByRole('button', { name: 'Pause' }).click();
    await page.getByRole('button', { name: 'Pause it' }).click();
    await row.getByText('paused').waitFor();
    await row.getByRole('button', { name: 'Resume' }).click();
    await page.getByRole('button', { name: 'Resume it' }).click();
    await row.getByText('active').waitFor();
    await row.getByRole('button', { name: 'Run now' }).click();
    await page.getByRole('button', { name: 'Start it' }).click();
    await page.locator('.failure').waitFor();
    expect(await text(page)).toMatch(/Started by\s+schedule/);
  });

  it('a component: the difference of two versions, a deployment and a roll-back', async () => {
    const { page } = await open();
    await show(page, '/components/greeting');
    await page.getByLabel('Compared with').selectOption('v1.0.0');
    await page.locator('.code .added', { hasText: 'Hello' }).waitFor();
    expect(await page.locator('.code .removed').first().innerText()).toContain('Dear');
    await page
      .getByRole('row', { name: /v1\.1\.0/ })
      .getByRole('button', { name: 'Deploy' })
      .click();
    await page.getByLabel('Why').fill('friendlier for all');
    await page.getByRole('dialog').getByRole('button', { name: 'Deploy' }).click();
    await page.getByRole('button', { name: 'Roll back' }).waitFor();
    const deployed = async () =>
      (await demo.orchestrator.components.deployments('greeting')).find(
        ({ environment }) => environment === 'production',
      );
    expect(await deployed()).toMatchObject({ version: 'v1.1.0', message: 'friendlier for all' });
    await page.getByRole('button', { name: 'Roll back' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Roll back' }).click();
    await expect.poll(async () => (await deployed())?.version).toBe('v1.0.0');
  });

  it('a delivery shows its attempts and is sent again', async () => {
    const { page } = await open();
    await show(page, '/deliveries?status=failed');
    await page.locator('summary').first().click();
    expect(await page.locator('tbody .lines').first().innerText()).not.toBe('');
    await page.getByRole('button', { name: 'Send again' }).first().click();
    await page.getByRole('button', { name: 'Send it' }).click();
    await page.getByText('It is sent again.').waitFor();
  });

  it('a token is created with scopes, shown once, listed without its value, and revoked', async () => {
    const { page } = await open();
    await show(page, '/settings');
    await page.getByRole('button', { name: 'Create a token' }).click();
    await page.getByLabel('Name').fill('for the shop');
    await page.getByLabel('execute:ensembles').check();
    await page.getByRole('button', { name: 'Create it' }).click();
    const value = await page.locator('.secret').innerText();
    expect(await demo.orchestrator.tokens.verify(value)).toMatchObject({ scopes: ['execute:ensembles'] });
    await page.getByRole('button', { name: 'Close' }).click();
    await page.locator('.secret').waitFor({ state: 'detached' });
    const row = page.getByRole('row', { name: /for the shop/ });
    const headers = { authorization: `Bearer ${value}` };
    expect((await fetch(`${demo.url}api/v1/usage`, { headers })).status).toBe(200);
    await row.getByRole('button', { name: 'Usage' }).click();
    await page.getByRole('dialog').getByText('1 of 100').waitFor();
    await page.keyboard.press('Escape');
    expect(await row.innerText()).toContain(value.slice(-4));
    expect(await page.content()).not.toContain(value);
    await row.getByRole('button', { name: 'Revoke' }).click();
    await page.getByRole('button', { name: 'Revoke it' }).click();
    await row.waitFor({ state: 'detached' });
    await expect(demo.orchestrator.tokens.verify(value)).rejects.toMatchObject({ code: 'UNAUTHORIZED' });
  });

  it('what a person types into a filter stays while the list is read again', async () => {
    const { page } = await open();
    await show(page, '/executions');
    await page.locator('[data-row]').first().waitFor();
    await page.getByLabel('Id or tag begins with').pressSequentially('exec_01');
    const { id } = await demo.orchestrator.execute('ship', {});
    await page.getByRole('link', { name: id }).waitFor({ timeout: 10_000 });
    expect(await page.getByLabel('Id or tag begins with').inputValue()).toBe('exec_01');
  });

  it('a token that is revoked while the page is open leads to the form for another one', async () => {
    const { token, id } = await demo.orchestrator.tokens.create({
      name: 'short',
      scopes: ['admin'],
      plan: 'enterprise',
    });
    const { page } = await open(token);
    await show(page, '/executions');
    await page.locator('[data-row]').first().waitFor();
    await demo.orchestrator.tokens.revoke(id);
    await page.getByLabel('API token').waitFor({ timeout: 10_000 });
    await page.getByLabel('API token').fill(admin);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.locator('[data-row]').first().waitFor();
  });

  it('an answer that comes too late is refused in the dialog, which stays', async () => {
    const { id } = await demo.orchestrator.start('order', { customer: 'Two', quantity: 8 });
    const { page } = await open();
    await show(page, `/executions/${id}`);
    await page.getByRole('button', { name: 'Send approved' }).click();
    await page.getByLabel('Payload, as JSON').fill('{ "by": "me" }');
    await demo.orchestrator.executions.signal(id, 'approved', { by: 'another' });
    await page.locator('.title .badge', { hasText: 'completed' }).waitFor({ timeout: 10_000 });
    await page.getByRole('button', { name: 'Send it' }).click();
    await page.getByRole('alert').waitFor();
    expect(await page.getByRole('alert').innerText()).toContain('accepts no more signals');
  });

  it('keys: / goes to the filter, j and k through the rows, Enter opens, Esc goes back, ? shows the keys', async () => {
    const { page } = await open();
    await show(page, '/executions?status=failed');
    await page.locator('[data-row]').first().waitFor();
    await page.keyboard.press('/');
    expect(await page.evaluate(() => document.activeElement?.hasAttribute('data-filter'))).toBe(true);
    await page.keyboard.press('Escape');
    for (const key of ['j', 'j', 'k']) await page.keyboard.press(key);
    const first = await page.locator('[data-row]').first().innerText();
    expect(await page.evaluate(() => document.activeElement?.textContent)).toBe(first);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: first }).waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('heading', { name: 'Executions' }).waitFor();
    expect(page.url()).toContain('?status=failed');
    await expect.poll(() => page.evaluate(() => document.activeElement?.textContent)).toBe(first);
    await page.keyboard.press('?');
    await page.getByRole('dialog', { name: 'Keys' }).waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog', { name: 'Keys' }).waitFor({ state: 'detached' });
  });

  const SCREENS = () => [
    ...['/', '/executions', `/executions/${ids.done}`, `/executions/${ids.done}?tab=flow`],
    ...[
      `/executions/${ids.done}?tab=values`,
      `/executions/${ids.failed}?step=flow%5B0%5D`,
      `/executions/${ids.waiting}`,
    ],
    ...['/ensembles', '/ensembles/order', '/ensembles/order?view=versions', '/schedules', '/components'],
    ...['/components/greeting?with=v1.0.0', '/deliveries', '/settings'],
  ];

  it.each(['light', 'dark'] as const)('axe finds nothing on any screen, %s', async (colorScheme) => {
    const { page } = await open(admin, { colorScheme });
    const found: string[] = [];
    for (const screen of SCREENS()) {
      await show(page, screen);
      await page.waitForLoadState('networkidle');
      // The policy of the page lets no other script in, so the test puts it into a world of its own.
      const violations = await runAxe(page);
      found.push(...violations.map((one) => `${screen}: ${one}`));
    }
    expect(found).toEqual([]);
  });

  it('every screen fits into 320 pixels', async () => {
    const { page } = await open(admin, { viewport: { width: 320, height: 640 } });
    for (const screen of SCREENS()) {
      await show(page, screen);
      await page.waitForLoadState('networkidle');
      expect([screen, await page.evaluate(() => document.documentElement.scrollWidth)]).toEqual([screen, 320]);
    }
  });

  async function runAxe(page: Page): Promise<string[]> {
    const session = await page.context().newCDPSession(page);
    const { frameTree } = await session.send('Page.getFrameTree');
    const { executionContextId: contextId } = await session.send('Page.createIsolatedWorld', {
      frameId: frameTree.frame.id,
    });
    const { result } = await session.send('Runtime.evaluate', {
      contextId,
      awaitPromise: true,
      returnByValue: true,
      expression: `${AXE}; axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) =>
        violations.flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) => id + ': ' + html + ' ' + failureSummary)))`,
    });
    await session.detach();
    return result.value as string[];
  }
});
