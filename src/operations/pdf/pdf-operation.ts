/** The `pdf` operation: renders HTML as a PDF through the PDF port. */

import * as z from 'zod/mini';
import { toBase64 } from '../../engine/base/bytes/base64.ts';
import { isOrchestratorError, OrchestratorError } from '../../engine/base/errors.ts';
import type { JsonObject } from '../../engine/base/json/json.ts';
import { once } from '../../engine/base/once.ts';
import { toMs, type WrittenDuration } from '../../engine/base/time/duration.ts';
import { durationSchema } from '../../engine/base/time/duration-schema.ts';
import { underDeadline } from '../../engine/base/time/under-deadline.ts';
import type { Clock } from '../../engine/host/clock.port.ts';
import type { HttpClient } from '../../engine/host/http.port.ts';
import type { ConfigIssue, Operation, OperationContext } from '../../engine/operation/operation.port.ts';
import type { PdfDocument, PdfRenderer } from '../../engine/operation/pdf.port.ts';
import { LENGTH, PAGE_FORMATS, type PageConfig, parseLength, toPageLayout } from './page-layout.ts';

export interface PdfOperationDependencies {
  /** The option `pdf` of the host. */
  readonly renderer: PdfRenderer | undefined;
  readonly http: HttpClient;
  readonly clock: Clock;
}

/** The output of a `pdf` agent. It can be an attachment of an `email` agent, and the value that a `storage` agent stores. */
export interface PdfOutput {
  readonly content: string;
  readonly contentType: 'application/pdf';
  readonly encoding: 'base64';
  readonly pages: number;
  /** Bytes of the PDF. */
  readonly size: number;
  /** What the PDF lacks, such as images by address. Absent without one. */
  readonly warnings?: readonly string[] | undefined;
}

/** Null means absent in every field, so that an expression can leave an option out. */
export interface PdfConfig extends PageConfig {
  readonly html: string;
  /** Default `60s`. */
  readonly timeout?: WrittenDuration | null | undefined;
}

const MAX_HTML_CHARS = 2_000_000;
const MAX_PAGES = 1000;
/** As Base64, these are 4,000,000 characters: the output of an agent may have 4 MiB. */
const MAX_PDF_BYTES = 3_000_000;
const DEFAULT_TIMEOUT = '60s';

const NEEDS_RENDERER =
  "operation `pdf` needs the option `pdf` of createOrchestrator: `pdf: embeddedPdf()` from 'ensemble-orchestrator/pdf', or another renderer of that entry";
const NO_TEMPLATE = 'must be a reference such as `template://invoice@production`, and takes the place of `html`';

// Null means absent, so that an expression can leave an option out. An evaluated value is refused with the message of its schema.
const pdfConfig = once(() => {
  const length = (what: string) => z.string(what).check(z.refine((text) => parseLength(text) !== undefined, what));
  const expected = `must be ${LENGTH}`;
  const format = `must be one of ${PAGE_FORMATS.join(', ')}, or { width, height } with CSS lengths`;
  const margin = `must be ${LENGTH}, or { top, right, bottom, left } of these`;
  const side = z.nullish(length(expected));
  const flag = z.nullish(z.boolean('must be true or false'));
  return z.strictObject({
    html: z.string('must be a text of HTML'),
    template: z.optional(z.unknown()),
    format: z.nullish(
      z.union([z.enum(PAGE_FORMATS), z.strictObject({ width: length(expected), height: length(expected) })], format),
    ),
    landscape: flag,
    margin: z.nullish(
      z.union([length(margin), z.strictObject({ top: side, right: side, bottom: side, left: side })], margin),
    ),
    pageNumbers: flag,
    timeout: z.nullish(durationSchema()),
  });
});

/**
 * Creates the `pdf` operation. HTML without text, a page without space for its content and a document with more than 1,000 pages fail the agent with
 * `INVALID_INPUT`, and a PDF of more than 3,000,000 bytes with `INVALID_OUTPUT`. An `OrchestratorError` of the renderer is passed on. Any
 * other error of it is logged.
 *
 * @param parts - the renderer of the host, and its HTTP client
 */
export function pdfOperation({ renderer, http, clock }: PdfOperationDependencies): Operation<PdfConfig> {
  return Object.freeze<Operation<PdfConfig>>({
    name: 'pdf',
    texts: { html: 'html' },
    readsOnlyInput: () => true,
    output: PDF_OUTPUT,
    // What is written in a PDF is read by everyone who receives it.
    shows: ['html'],
    get config() {
      return pdfConfig() as Operation<PdfConfig>['config'];
    },
    check: (config) => checkConfig(config, renderer !== undefined),
    async run(context): Promise<PdfOutput> {
      const { config, idempotencyKey, signal } = context;
      const { html } = config;
      if (html.trim() === '') throw invalidPdfInput('`html` is empty; a PDF needs content');
      if (html.length > MAX_HTML_CHARS) {
        const limit = `${html.length} characters; the limit is ${MAX_HTML_CHARS}`;
        throw invalidPdfInput(`\`html\` has ${limit}. Use smaller images, or split the document`);
      }
      const layout = toPageLayout(config);
      if ('problem' in layout) throw invalidPdfInput(`\`config.${layout.key}\` ${layout.problem}`);
      if (renderer === undefined) throw new OrchestratorError('NOT_CONFIGURED', NEEDS_RENDERER);
      const timeoutMs = toMs(config.timeout ?? DEFAULT_TIMEOUT);
      const request = {
        ...layout,
        html,
        pageNumbers: config.pageNumbers === true,
        maxPages: MAX_PAGES,
        ...{ http, idempotencyKey },
        timeoutMs,
      };
      const late = () =>
        new OrchestratorError('TIMEOUT', `the PDF took longer than ${timeoutMs} ms`, {
          retryable: true,
          details: { timeoutMs },
        });
      try {
        const document = await underDeadline({ timeoutMs, setTimer: clock.setTimer, signal, late }, (within) =>
          renderer.render({ ...request, signal: within }),
        );
        const output = toOutput(document);
        const dropped = countReferences(html);
        if (dropped === 0) return output;
        const warning = `${dropped === 1 ? 'an image or a style' : `${dropped} images or styles`} by address ${dropped === 1 ? 'is' : 'are'} not in the PDF, which loads nothing; embed them as data: URIs`;
        context.logger.warn({ references: dropped }, 'images or styles by address are not in the PDF');
        return { ...output, warnings: [warning] };
      } catch (thrown) {
        throw signal.aborted ? thrown : toFailure(thrown, context);
      }
    },
  });
}

/** Elements and rules that name something outside of the document. A link only leads there, and does not count. */
const REFERENCES =
  /<(?:img|image|input|source|video|audio|object|embed|iframe|script|link)\b[^>]*?\s(?:src|href|data|xlink:href)\s*=\s*["']?\s*(?!data:|#|["'\s>])|url\(\s*["']?\s*(?!data:|#|["'\s)])|@import\b/gi;

/** How many references a renderer leaves out: it loads nothing. */
function countReferences(html: string): number {
  return [...html.matchAll(REFERENCES)].length;
}

function toOutput({ content, pages }: PdfDocument): PdfOutput {
  if (pages > MAX_PAGES) throw invalidPdfInput(`the document has ${pages} pages; the limit is ${MAX_PAGES}. Split it`);
  const size = content.byteLength;
  if (size > MAX_PDF_BYTES) {
    const message = `the PDF has ${size} bytes; the limit is ${MAX_PDF_BYTES}. Use smaller images, or split the document`;
    throw new OrchestratorError('INVALID_OUTPUT', message);
  }
  return { content: toBase64(content), contentType: 'application/pdf', encoding: 'base64', pages, size };
}

// The renderers of this library throw an OrchestratorError. The message of another one may contain anything, so only the log receives it.
function toFailure(thrown: unknown, { logger }: OperationContext<PdfConfig>): unknown {
  if (isOrchestratorError(thrown)) return thrown;
  logger.error({ err: thrown }, 'the PDF renderer failed');
  const message = 'the PDF renderer failed; the log has its error';
  return new OrchestratorError('AGENT_FAILED', message, { cause: thrown, retryable: true });
}

function checkConfig(config: JsonObject, hasRenderer: boolean): readonly ConfigIssue[] {
  const issues: ConfigIssue[] = [];
  if (config.template !== undefined && config.template !== null) {
    issues.push({ path: ['template'], message: NO_TEMPLATE });
    // Without it, the missing `html` would be a second problem with the same remedy.
    if (config.html === undefined) return issues.map((issue) => ({ ...issue, alone: true }));
  }
  if (!hasRenderer) issues.push({ path: [], message: NEEDS_RENDERER, notConfigured: true });
  if (!hasExpression([config.format, config.landscape, config.margin, config.pageNumbers])) {
    const page = pdfConfig().safeParse({ ...config, html: '' });
    const layout = page.success ? toPageLayout(page.data as PageConfig) : undefined;
    if (layout && 'problem' in layout) issues.push({ path: [layout.key], message: layout.problem });
  }
  return issues;
}

const hasExpression = (values: readonly unknown[]) => JSON.stringify(values).includes('${');

function invalidPdfInput(message: string): OrchestratorError {
  return new OrchestratorError('INVALID_INPUT', message);
}

const PDF_OUTPUT: JsonObject = {
  type: 'object',
  properties: {
    content: { type: 'string' },
    contentType: { const: 'application/pdf' },
    encoding: { const: 'base64' },
    pages: { type: 'integer' },
    size: { type: 'integer' },
    warnings: { type: 'array', items: { type: 'string' } },
  },
  required: ['content', 'contentType', 'encoding', 'pages', 'size'],
  additionalProperties: false,
};
