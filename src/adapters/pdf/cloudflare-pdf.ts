/** The PDF renderer of Cloudflare's Browser Rendering, over its HTTP API. */

import { OrchestratorError } from '../../engine/base/errors.ts';
import { like, optional, readOptions, requiredOption } from '../../engine/base/read-options.ts';
import type { HttpResponse } from '../../engine/host/http.port.ts';
import { isRetryableStatus, retryAfterOf } from '../../engine/host/retry-after.ts';
import type { PdfRenderer, PdfRequest } from '../../engine/operation/pdf.port.ts';
import { toDocument, toPrintOptions } from './print-options.ts';

export interface CloudflarePdfOptions {
  readonly accountId: string;
  /** A token with the permission `Browser Rendering - Edit`. It appears in no message. */
  readonly apiToken: string;
  /** The address of the API. Default `https://api.cloudflare.com/client/v4`. */
  readonly url?: string | undefined;
}

const DEFAULT_URL = 'https://api.cloudflare.com/client/v4';
const MAX_ANSWER_BYTES = 32 * 1024 * 1024;
const MAX_TEXT = 500;
/** The longest time that the service accepts for a step. */
const MAX_STEP_MS = 60_000;

/**
 * Creates the renderer for `createOrchestrator({ pdf })`. It runs everywhere, and sends the HTML to Cloudflare.
 *
 * @throws INVALID_REQUEST for an option that is missing or has a wrong form
 */
export function cloudflarePdf(options: CloudflarePdfOptions): PdfRenderer {
  const {
    accountId,
    apiToken,
    url = DEFAULT_URL,
  } = readOptions('cloudflarePdf', options, {
    accountId: requiredOption('the id of an account', like(/^[A-Za-z0-9_-]{1,100}$/)),
    apiToken: requiredOption('a token of the API', like(/^[\x21-\x7e]{1,1000}$/)),
    url: optional('an http(s) address without a query', like(/^https?:\/\/[^/?#@\s]+(?:\/[^?#\s]*)?$/)),
  });
  const target = `${url.replace(/\/+$/, '')}/accounts/${accountId}/browser-rendering/pdf`;
  return Object.freeze<PdfRenderer>({
    async render(request) {
      const response = await request.http.send({
        method: 'POST',
        // The service keeps a result for some seconds otherwise, for anyone who sends the same.
        url: `${target}?cacheTTL=0`,
        headers: {
          ...{ authorization: `Bearer ${apiToken}`, 'content-type': 'application/json', accept: 'application/pdf' },
          'idempotency-key': request.idempotencyKey,
        },
        body: JSON.stringify(toBody(request)),
        timeoutMs: request.timeoutMs,
        maxResponseBytes: MAX_ANSWER_BYTES,
        signal: request.signal,
      });
      const { status, headers, body } = response;
      if (status < 200 || status > 299) throw statusFailure(response, apiToken);
      if (!/^application\/pdf\b/i.test(headers['content-type'] ?? '')) throw notPdf(response, apiToken);
      return toDocument(body, request.maxPages, LABEL);
    },
  });
}

const LABEL = 'cloudflarePdf';

function toBody(request: PdfRequest): object {
  const timeout = Math.min(request.timeoutMs, MAX_STEP_MS);
  return {
    html: request.html,
    pdfOptions: { ...toPrintOptions(request), timeout },
    gotoOptions: { waitUntil: 'load', timeout },
    setJavaScriptEnabled: false,
    rejectRequestPattern: ['^(?!data:)'],
    rejectResourceTypes: REJECTED,
  };
}

/** Everything that a page can ask for. The service does not count what is in a `data:` URI. */
const REJECTED = [
  'stylesheet',
  'image',
  'media',
  'font',
  'script',
  'texttrack',
  'xhr',
  'fetch',
  'prefetch',
  'eventsource',
  'websocket',
  'manifest',
  'signedexchange',
  'ping',
  'cspviolationreport',
  'preflight',
  'other',
];

function statusFailure(response: HttpResponse, apiToken: string): OrchestratorError {
  const { status, headers } = response;
  const said = saidBy(response, apiToken);
  const details = { status, ...retryAfterOf(headers) };
  // The service answers so for HTML that it can't take.
  if (status === 413 || status === 422)
    return new OrchestratorError(
      'INVALID_INPUT',
      `cloudflarePdf: the service refuses the document (${status})${said}`,
      { details },
    );
  const hint = status === 401 || status === 403 ? '; the token needs the permission `Browser Rendering - Edit`' : '';
  return new OrchestratorError('AGENT_FAILED', `cloudflarePdf: the service answered ${status}${said}${hint}`, {
    details,
    retryable: isRetryableStatus(status),
  });
}

function notPdf(response: HttpResponse, apiToken: string): OrchestratorError {
  return new OrchestratorError('AGENT_FAILED', `cloudflarePdf: the answer is not a PDF${saidBy(response, apiToken)}`, {
    details: { status: response.status, reason: 'not-pdf' },
  });
}

/** The service's own words: `{ errors: [{ code, message }] }`. The token is masked before the text is cut. */
function saidBy({ body }: HttpResponse, apiToken: string): string {
  let said = '';
  try {
    const { errors } = JSON.parse(new TextDecoder().decode(body.subarray(0, 100_000))) as {
      errors?: readonly { message?: unknown }[];
    };
    said = (errors ?? []).map(({ message }) => (typeof message === 'string' ? message : '')).join('; ');
  } catch {
    return '';
  }
  const shown = said.replaceAll(apiToken, '***');
  return shown === '' ? '' : `: ${shown.length > MAX_TEXT ? `${shown.slice(0, MAX_TEXT)}...` : shown}`;
}
