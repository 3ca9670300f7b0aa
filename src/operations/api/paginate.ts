/** Reads a list that a service returns in pages: by its `Link` headers, by cursors, or by a number that grows. */

import { OrchestratorError } from '../../engine/base/errors.ts';
import { type Json, MAX_VALUE_BYTES } from '../../engine/base/json/json.ts';
import { countedBytes } from '../../engine/base/json/measure-json.ts';
import { valueAt } from '../../engine/base/json/value-at.ts';
import { type ApiOutput, describeRequest } from './answer.ts';
import { encodeForm } from './body.ts';
import type { Paginate } from './config.ts';
import type { ApiRequest } from './request.ts';

/** The output of an `api` agent with `paginate`. Status and headers are those of the last page. */
export interface PagedOutput extends ApiOutput {
  /** The items of all pages. */
  readonly body: readonly Json[];
  readonly pages: number;
  /** What the next page would have been asked with: its URL, cursor or number. Null after the last page. */
  readonly next: string | number | null;
}

const DEFAULT_MAX_PAGES = 10;

interface NextPage {
  readonly value: string | number;
  readonly url: string;
}

/**
 * Reads page after page until there is no next one, or `maxPages` are read. Nothing of it is stored before the end: an attempt begins
 * with the first page again.
 *
 * @param idempotencyKey - of the attempt
 * @param call - makes one exchange, and throws for a status that is not expected
 * @throws OrchestratorError `INVALID_REQUEST` if the parameter of the first page is not a number, where a number grows
 * @throws OrchestratorError `AGENT_FAILED`, not retryable, with `details.reason` `pagination` for a page without a list or with a next
 *   page that can't be asked, or `too-large` for more than 4 MiB of items; and what `call` throws
 */
export async function readPages(
  first: ApiRequest,
  how: Paginate,
  idempotencyKey: string,
  call: (request: ApiRequest) => Promise<ApiOutput>,
): Promise<PagedOutput> {
  const items: Json[] = [];
  const asked = new Set([first.url]);
  const maxPages = how.maxPages ?? DEFAULT_MAX_PAGES;
  let bytes = 0;
  let request = first;
  if (how.by === 'page' || how.by === 'offset') numberOf(first, how);
  for (let pages = 1; ; pages++) {
    const refuse = (what: string) => failure(request, 'pagination', `answered page ${pages} ${what}`);
    const answer = await call(request);
    const found = how.items == null ? answer.body : valueAt(answer.body, pathOf(how.items));
    const list = found === null ? [] : found;
    if (!Array.isArray(list)) {
      const place = how.items == null ? "its body; say where it is with 'paginate.items'" : `\`${how.items}\``;
      throw refuse(`without a list in ${place}`);
    }
    bytes += countedBytes(list);
    if (bytes > MAX_VALUE_BYTES) throw tooLargePages(request, pages);
    // Not spread into push: a page may have more items than a call has arguments.
    for (const item of list) items.push(item);
    const next = findNext(request, answer, list.length, how, refuse);
    if (next === undefined || pages >= maxPages) {
      return { status: answer.status, headers: answer.headers, body: items, pages, next: next?.value ?? null };
    }
    if (asked.has(next.url)) throw refuse('with a next page that was read already; the pages would never end');
    asked.add(next.url);
    request = { ...request, url: next.url, headers: headersOfPage(first, idempotencyKey, pages + 1) };
  }
}

function findNext(
  request: ApiRequest,
  answer: ApiOutput,
  count: number,
  how: Paginate,
  refuse: (what: string) => OrchestratorError,
): NextPage | undefined {
  const by = (param: string, value: string | number) => ({ value, url: withParameter(request.url, param, value) });
  if (how.by === 'link') {
    const link = nextLink(answer.headers.link ?? '');
    if (link === undefined) return undefined;
    const url = URL.canParse(link, request.url) ? new URL(link, request.url) : undefined;
    const { origin } = new URL(request.url);
    if (url === undefined) throw refuse('with a next link that is not a URL');
    if (url.origin !== origin)
      throw refuse(`with a next link to another origin, which must not get the headers of ${origin}`);
    return { value: url.href, url: url.href };
  }
  if (how.by === 'cursor') {
    const cursor = valueAt(answer.body, pathOf(how.cursor)) ?? '';
    if (cursor === '' || cursor === false) return undefined;
    if (typeof cursor === 'string' || typeof cursor === 'number') return by(how.param, cursor);
    throw refuse(
      `with something in \`${how.cursor}\` that is no cursor; expected text, a number, or null after the last page`,
    );
  }
  if (count === 0) return undefined;
  return by(how.param, numberOf(request, how) + (how.by === 'page' ? 1 : count));
}

/** The number with which a page was asked. */
function numberOf(
  { url }: ApiRequest,
  { by, param }: { readonly by: 'page' | 'offset'; readonly param: string },
): number {
  const written = new URL(url).searchParams.get(param) ?? (by === 'page' ? '1' : '0');
  if (/^\d{1,15}$/.test(written)) return Number(written);
  const message = `the query parameter '${param}' is not a whole number; 'paginate' counts on from it`;
  throw new OrchestratorError('INVALID_REQUEST', message, { details: { reason: 'url' } });
}

function pathOf(text: string): readonly string[] {
  return text.split('.');
}

// Changed as text: searchParams would change the spelling of the other parameters.
function withParameter(text: string, name: string, value: string | number): string {
  const url = new URL(text);
  const others = url.search
    .slice(1)
    .split('&')
    .filter((pair) => pair !== '' && !new URLSearchParams(pair).has(name));
  url.search = [...others, encodeForm({ [name]: value })].join('&');
  return url.href;
}

/** The URL of the link with `rel="next"` in a `Link` header (RFC 8288), as written. */
export function nextLink(header: string): string | undefined {
  const link = /\s*<([^>]*)>((?:\s*;\s*[^\s=;,"]+(?:\s*=\s*(?:"[^"]*"|[^\s;,"]*))?)*)\s*(?:,|$)/y;
  const parameter = /;\s*([^\s=;,"]+)(?:\s*=\s*(?:"([^"]*)"|([^\s;,"]*)))?/g;
  for (let found = link.exec(header); found; found = link.exec(header)) {
    const [, url, parameters = ''] = found;
    for (const [, name, quoted, plain = ''] of parameters.matchAll(parameter)) {
      if (name?.toLowerCase() === 'rel' && (quoted ?? plain).toLowerCase().split(' ').includes('next')) return url;
    }
  }
  return undefined;
}

// A service that honours idempotency keys would answer each page with the first one. A key of the config is sent as it is.
function headersOfPage({ headers }: ApiRequest, ownKey: string, page: number): ApiRequest['headers'] {
  return headers['Idempotency-Key'] === ownKey ? { ...headers, 'Idempotency-Key': `${ownKey}-${page}` } : headers;
}

function tooLargePages(request: ApiRequest, pages: number): OrchestratorError {
  const what = `answered ${pages} pages with more than 4 MiB of items together; set a smaller 'paginate.maxPages', or ask for fewer fields`;
  return failure(request, 'too-large', what);
}

function failure(request: ApiRequest, reason: string, what: string): OrchestratorError {
  return new OrchestratorError('AGENT_FAILED', `${describeRequest(request)} ${what}`, { details: { reason } });
}
