/** The PDF renderer that prints with a Chromium of this computer, through playwright-core. */

import pLimit from 'p-limit';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { messageOf, OrchestratorError } from '../../engine/base/errors.ts';
import { packageFailure } from '../../engine/base/package-failure.ts';
import { flag, readOptions, someText, wholeNumber } from '../../engine/base/read-options.ts';
import { withTimeout } from '../../engine/base/time/with-timeout.ts';
import type { PdfDocument, PdfRenderer, PdfRequest } from '../../engine/operation/pdf.port.ts';
import { findChromium } from './find-chromium.ts';
import { renderingTimeout, toDocument, toPrintOptions } from './print-options.ts';

export interface ChromiumPdfOptions {
  /** The program. Default: a Chromium, Chrome or Edge in the usual places. */
  readonly executablePath?: string | undefined;
  /**
   * Whether the browser's own sandbox is on. Default true, and false for the user root, for whom Chromium does not start with it. A
   * container without user namespaces needs false too.
   */
  readonly sandbox?: boolean | undefined;
  /** How many documents are rendered at the same time, 1 to 16. Others wait. Default 2. */
  readonly concurrency?: number | undefined;
}

const LABEL = 'chromiumPdf';
/** What the browser gets of the environment: nothing that may be secret. */
const ENVIRONMENT = [
  'PATH',
  'HOME',
  'USERPROFILE',
  'SYSTEMROOT',
  'TMPDIR',
  'TEMP',
  'TMP',
  'LANG',
  'FONTCONFIG_PATH',
  'FONTCONFIG_FILE',
];
// The route of each context lets nothing out. These switches also stop what pages do not request, such as look-ups of names.
const SWITCHES = [
  '--host-resolver-rules=MAP * ~NOTFOUND',
  '--proxy-server=http://127.0.0.1:9',
  '--proxy-bypass-list=<-loopback>',
  '--disable-background-networking',
  '--disable-file-system',
];
/** How long a stopped page may take to close before the browser is closed. */
const CLOSE_MS = 3000;

interface Chromium {
  /** The one browser, or its start. */
  browser?: Promise<Browser>;
}

/**
 * Creates the renderer for `createOrchestrator({ pdf })`. It needs the package `playwright-core` and a Chromium, and runs on Node.js, Deno
 * and Bun. The browser starts with the first document.
 *
 * @throws TypeError for an option that is unknown or wrong
 */
export function chromiumPdf(options: ChromiumPdfOptions = {}): PdfRenderer {
  const { concurrency = 2 } = readOptions('chromiumPdf', options, {
    executablePath: someText,
    sandbox: flag,
    concurrency: wholeNumber(1, 16),
  });
  const chromium: Chromium = {};
  const limit = pLimit(concurrency);
  return Object.freeze<PdfRenderer>({
    async render(request) {
      request.signal.throwIfAborted();
      return withinTime(request, (isOver) => limit(() => print(chromium, options, request, isOver)));
    },
    ready: async () => void (await findProgram(options.executablePath)),
    close: () => closeBrowser(chromium),
  });
}

/** Ends a call at its timeout, or when its signal aborts. `isOver` resolves then. */
function withinTime(request: PdfRequest, run: (isOver: Promise<void>) => Promise<PdfDocument>): Promise<PdfDocument> {
  const { signal, timeoutMs } = request;
  return new Promise((resolve, reject) => {
    let stop = () => {};
    const isOver = new Promise<void>((over) => {
      stop = over;
    });
    const onAbort = () => end(() => reject(signal.reason));
    const timer = setTimeout(() => end(() => reject(renderingTimeout(LABEL, timeoutMs))), timeoutMs);
    const end = (settle: () => void) => {
      clearTimeout(timer);
      signal.removeEventListener('abort', onAbort);
      stop();
      settle();
    };
    signal.addEventListener('abort', onAbort);
    run(isOver).then(
      (document) => end(() => resolve(document)),
      (thrown) => end(() => reject(thrown)),
    );
  });
}

async function print(chromium: Chromium, options: ChromiumPdfOptions, request: PdfRequest, isOver: Promise<void>) {
  const over = isOver.then(() => OVER);
  if ((await Promise.race([over, undefined])) === OVER) throw stopped();
  const opening = openContext(chromium, options);
  opening.catch(() => {});
  const context = await Promise.race([opening, over]);
  if (context === OVER) {
    // The browser said nothing: the next document starts another one.
    void closeBrowser(chromium);
    throw stopped();
  }
  const printing = printIn(context, request);
  // The failure of a page that was closed is of no interest.
  printing.catch(() => {});
  try {
    const content = await Promise.race([printing, over]);
    if (content === OVER) throw stopped();
    return toDocument(content, request.maxPages, LABEL);
  } catch (thrown) {
    if (thrown instanceof OrchestratorError) throw thrown;
    throw new OrchestratorError('AGENT_FAILED', `chromiumPdf: the browser failed: ${firstLine(thrown)}`, {
      cause: thrown,
      retryable: true,
    });
  } finally {
    await closeContext(chromium, context);
  }
}

const OVER = 'over' as const;
const stopped = () => new OrchestratorError('TIMEOUT', 'chromiumPdf: the call has ended', { retryable: true });
const firstLine = (thrown: unknown) => messageOf(thrown).split('\n', 1)[0];

async function printIn(context: BrowserContext, request: PdfRequest): Promise<Uint8Array> {
  const page: Page = await context.newPage();
  page.setDefaultTimeout(request.timeoutMs);
  await page.setContent(request.html, { waitUntil: 'load', timeout: request.timeoutMs });
  return page.pdf(toPrintOptions(request));
}

async function openContext(chromium: Chromium, options: ChromiumPdfOptions): Promise<BrowserContext> {
  for (let attempt = 1; ; attempt++) {
    chromium.browser ??= launch(options);
    const launching = chromium.browser;
    try {
      const browser = await launching;
      const context = await browser.newContext({
        javaScriptEnabled: false,
        offline: true,
        serviceWorkers: 'block',
        acceptDownloads: false,
      });
      await context.route('**/*', (route) => {
        if (route.request().url().startsWith('data:')) return route.continue();
        // With an empty answer the document stays. An aborted navigation would put the page of an error in its place.
        return route.request().isNavigationRequest() ? route.fulfill({ status: 204 }) : route.abort();
      });
      return context;
    } catch (thrown) {
      // A browser that has ended since the last document starts again, once.
      if (chromium.browser === launching) delete chromium.browser;
      if (thrown instanceof OrchestratorError || attempt === 2) throw launchFailure(thrown);
    }
  }
}

async function launch({ executablePath, sandbox }: ChromiumPdfOptions): Promise<Browser> {
  const { chromium, path } = await findProgram(executablePath);
  const isRoot = process.getuid?.() === 0;
  const environment = ENVIRONMENT.flatMap((name) => {
    const value = process.env[name];
    return value === undefined ? [] : [[name, value] as const];
  });
  return chromium.launch({
    executablePath: path,
    headless: true,
    chromiumSandbox: sandbox ?? !isRoot,
    args: SWITCHES,
    env: Object.fromEntries(environment),
    handleSIGINT: false,
    handleSIGTERM: false,
    handleSIGHUP: false,
  });
}

async function findProgram(given: string | undefined) {
  const { chromium } = await loadPlaywright();
  return { chromium, path: await findChromium(given, chromium.executablePath()) };
}

async function loadPlaywright(): Promise<typeof import('playwright-core')> {
  try {
    return await import('playwright-core');
  } catch (cause) {
    const more = '. It needs Node.js, Deno or Bun; on Workers, use cloudflarePdf()';
    throw packageFailure(cause, { who: 'chromiumPdf', name: 'playwright-core', more });
  }
}

function launchFailure(thrown: unknown): unknown {
  if (thrown instanceof OrchestratorError) return thrown;
  const hint = /sandbox/i.test(messageOf(thrown))
    ? '; pass `sandbox: false` if this container has no user namespaces'
    : '';
  return new OrchestratorError('AGENT_FAILED', `chromiumPdf: the browser does not start: ${firstLine(thrown)}${hint}`, {
    cause: thrown,
    retryable: true,
  });
}

const setTimer = (ms: number, callback: () => void) => {
  const timer = setTimeout(callback, ms);
  return () => clearTimeout(timer);
};

/** @returns whether it was closed in time, or failed to */
async function isClosedInTime(closing: Promise<unknown> | undefined): Promise<boolean> {
  const ended = Promise.resolve(closing).then(
    () => true,
    () => true,
  );
  return (await withTimeout(ended, CLOSE_MS, setTimer)) === true;
}

// A page that is busy may not close. Then the whole browser is closed, and the next document starts another one.
async function closeContext(chromium: Chromium, context: BrowserContext): Promise<void> {
  if (!(await isClosedInTime(context.close()))) void closeBrowser(chromium);
}

/** A browser that does not end by itself is ended by force, which Playwright does after half a minute. Nobody waits for that. */
async function closeBrowser(chromium: Chromium): Promise<void> {
  const { browser } = chromium;
  delete chromium.browser;
  await isClosedInTime(browser?.then((opened) => opened.close()));
}
