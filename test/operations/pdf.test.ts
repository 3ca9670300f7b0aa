/** The `pdf` operation: what its config may hold, what it asks of the renderer, and what its output is. */

import { describe, expect, it } from 'vitest';
import type { PdfDocument, PdfRenderer, PdfRequest } from '../../src/entries/pdf.ts';
import { createTestOrchestrator } from '../../src/entries/testing.ts';
import { createOrchestrator, isOrchestratorError, type JsonObject, OrchestratorError } from '../../src/index.ts';

const MM = 72 / 25.4;
const PDF = Buffer.from('%PDF-1.3 pages');

/** A renderer that records its requests. */
function recorder(give: () => PdfDocument | Promise<PdfDocument> = () => ({ content: PDF, pages: 2 })) {
  const requests: PdfRequest[] = [];
  let closed = 0;
  const renderer: PdfRenderer = {
    render: (request) => {
      requests.push(request);
      return give();
    },
    close: () => {
      closed += 1;
    },
  };
  return { renderer, requests, closed: () => closed };
}

const ensemble = (config: JsonObject) => ({
  name: 'e',
  flow: [{ agent: 'print', operation: 'pdf', config: config as never, input: '${input}' }],
  outputs: { pdf: '${print.output}' },
});

async function run(config: JsonObject, input: JsonObject = {}, give?: () => PdfDocument | Promise<PdfDocument>) {
  const { renderer, requests, closed } = recorder(give);
  const orchestrator = createTestOrchestrator({ pdf: renderer, ensembles: [ensemble(config)] });
  const execution = await orchestrator.execute('e', input);
  await orchestrator.close();
  return { execution, requests, closed };
}

function problems(config: JsonObject, options = { pdf: recorder().renderer }) {
  try {
    createOrchestrator({ ...options, ensembles: [ensemble(config)] });
  } catch (error) {
    if (!isOrchestratorError(error)) throw error;
    const { issues } = error.details as { issues: readonly { path: string; message: string }[] };
    return { code: error.code, issues: issues.map(({ path, message }) => `${path}: ${message}`) };
  }
  throw new Error('was accepted');
}

describe('the `pdf` operation', () => {
  it.each([
    ['<img src="https://cdn.example/logo.png?key=1"><p>x</p>', 'an image or a style by address is not in the PDF'],
    [
      '<img alt="" src=//cdn.example/a.png><div style="background: url(http://e.com/b.png)">x</div>',
      '2 images or styles',
    ],
    ['<style>@import "a.css"; p { color: red }</style><p>x</p>', 'an image or a style by address'],
    ['<link rel="stylesheet" href="style.css"><p>x</p>', 'an image or a style by address'],
  ])('what it leaves out is a warning in the output and the log, without the address: %s', async (html, warning) => {
    const lines: unknown[] = [];
    const logger = { debug() {}, info() {}, warn: (...line: unknown[]) => void lines.push(line), error() {} };
    const orchestrator = createTestOrchestrator({ pdf: recorder().renderer, ensembles: [ensemble({ html })], logger });
    const { output } = (await orchestrator.execute('e')) as { output: { pdf: { warnings: string[] } } };
    expect(output.pdf.warnings).toEqual([expect.stringContaining(warning)]);
    expect(JSON.stringify([output, lines])).not.toContain('example');
    expect(lines).toMatchObject([[{ agent: 'print' }, 'images or styles by address are not in the PDF']]);
  });

  it('links, parts of the document and data are no such references', async () => {
    const html =
      '<a href="https://e.com">x</a><img src="data:image/png;base64,AA"><svg><use href="#a"/></svg>&lt;img src="http://e.com"&gt;';
    const { execution } = await run({ html });
    expect(execution.output).not.toHaveProperty('pdf.warnings');
  });

  it('gives Base64 that an attachment and an object store take, with its pages and its size', async () => {
    const { execution, requests, closed } = await run({ html: '<p>x</p>' });
    expect(execution.output).toEqual({
      pdf: {
        content: PDF.toString('base64'),
        contentType: 'application/pdf',
        encoding: 'base64',
        pages: 2,
        size: PDF.length,
      },
    });
    expect(requests).toHaveLength(1);
    expect(requests[0]).toMatchObject({ html: '<p>x</p>', pageNumbers: false, maxPages: 1000, timeoutMs: 60_000 });
    expect(closed()).toBe(1);
  });

  it('fills in `{{ ... }}` of the HTML from the input, escaped', async () => {
    const { requests } = await run({ html: '<p>{{ name }}</p>' }, { name: '<script>&"' });
    expect(requests[0]?.html).toBe('<p>&lt;script&gt;&amp;&quot;</p>');
  });

  it.each([
    [{}, { width: 210 * MM, height: 297 * MM }, [15, 15, 15, 15].map((mm) => mm * MM)],
    [{ landscape: true }, { width: 297 * MM, height: 210 * MM }, [15, 15, 15, 15].map((mm) => mm * MM)],
    [{ format: 'Letter', margin: '1in' }, { width: 612, height: 792 }, [72, 72, 72, 72]],
    [{ format: { width: '10cm', height: '96px' }, margin: '0' }, { width: 100 * MM, height: 72 }, [0, 0, 0, 0]],
    [{ margin: { top: '2cm', left: '30pt' } }, { width: 210 * MM, height: 297 * MM }, [20 * MM, 15 * MM, 15 * MM, 30]],
  ])('%o is a page of points', async (config, pageSize, [top, right, bottom, left]) => {
    const { requests } = await run({ html: 'x', ...config });
    const [found] = requests;
    expect(found?.pageSize.width).toBeCloseTo(pageSize.width, 3);
    expect(found?.pageSize.height).toBeCloseTo(pageSize.height, 3);
    const { margin } = found as PdfRequest;
    [margin.top, margin.right, margin.bottom, margin.left].forEach((side, i) => {
      expect(side).toBeCloseTo([top, right, bottom, left][i] as number, 3);
    });
  });

  it.each([
    [{}, /config.*html/],
    [{ template: 'invoice' }, /config\.template: must be a reference such as `template:\/\/invoice@production`/],
    [{ html: 'x', format: 'B5' }, /config\.format: must be one of A3, A4, A5, Letter, Legal, Tabloid/],
    [{ html: 'x', format: { width: '1mm', height: '10cm' } }, /config\.format: has a side that is shorter/],
    [{ html: 'x', margin: '20' }, /config\.margin: must be a CSS length such as `20mm`/],
    [{ html: 'x', margin: '12em' }, /config\.margin: must be a CSS length/],
    [{ html: 'x', margin: '11cm' }, /config\.margin: leaves less than 0\.5in/],
    [{ html: 'x', margin: '5mm', pageNumbers: true }, /config\.margin: leaves no space for page numbers/],
    [{ html: 'x', landscape: 'yes' }, /config\.landscape: must be true or false/],
    [{ html: 'x', size: 'A4' }, /size/],
  ])('%o is refused at load', (config, message) => {
    const { code, issues } = problems(config as JsonObject);
    expect(code).toBe('INVALID_DEFINITION');
    expect(issues).toHaveLength(1);
    expect(issues[0]).toMatch(message);
  });

  it('needs the option `pdf`: without it, the definition is refused and the message names the renderer', () => {
    const { code, issues } = problems({ html: 'x' }, {} as never);
    expect(code).toBe('NOT_CONFIGURED');
    expect(issues[0]).toContain("`pdf: embeddedPdf()` from 'ensemble-orchestrator/pdf'");
  });

  it.each([
    ['empty HTML', { html: '${input.html}' }, { html: '  ' }, 'INVALID_INPUT', /`html` is empty/],
    [
      'too much HTML',
      { html: '${input.html}' },
      { html: 'x'.repeat(2_000_001) },
      'INVALID_INPUT',
      /the limit is 2000000/,
    ],
    [
      'a margin that is too large',
      { html: 'x', margin: '${input.m}' },
      { m: '20cm' },
      'INVALID_INPUT',
      /`config\.margin` leaves/,
    ],
  ])('%s fails the agent before the renderer is called', async (_what, config, input, code, message) => {
    const { execution, requests } = await run(config, input);
    expect(execution).toMatchObject({ status: 'failed', error: { code, message: expect.stringMatching(message) } });
    expect(requests).toEqual([]);
  });

  it.each([
    [
      'a PDF that no record can hold',
      () => ({ content: new Uint8Array(3_000_001), pages: 1 }),
      'INVALID_OUTPUT',
      /3000001 bytes; the limit is 3000000/,
    ],
    ['too many pages', () => ({ content: PDF, pages: 1001 }), 'INVALID_INPUT', /1001 pages; the limit is 1000/],
    [
      'an error of the renderer',
      () => Promise.reject(new OrchestratorError('TIMEOUT', 'too slow')),
      'TIMEOUT',
      /too slow/,
    ],
    [
      'any other error',
      () => Promise.reject(new Error('the password is x')),
      'AGENT_FAILED',
      /^(?!.*password).*the log has its error/,
    ],
  ])('%s fails the agent', async (_what, give, code, message) => {
    const { execution } = await run({ html: 'x' }, {}, give);
    expect(execution).toMatchObject({ status: 'failed', error: { code, message: expect.stringMatching(message) } });
  });

  it('a PDF of the largest size is stored', async () => {
    const { execution } = await run({ html: 'x' }, {}, () => ({ content: new Uint8Array(3_000_000), pages: 1 }));
    expect(execution.status).toBe('completed');
  });

  it('its HTML must not contain secrets: it ends in a document that others read', () => {
    const { issues } = problems({ html: '<p>${env.KEY}</p>' }, {
      pdf: recorder().renderer,
      secrets: { KEY: 'secret-123' },
    } as never);
    expect(issues[0]).toMatch(/KEY/);
  });
});
