/** The host port: how a server passes requests to a handler, as the platform's `Request`, or as plain parts where that is cheaper. */

import { OrchestratorError } from '../base/errors.ts';
import type { MaybePromise } from '../operation/operation.port.ts';

/** What the host knows about a request in addition to the request itself. */
export interface HostInfo {
  /** The address of the peer's socket, without a port. */
  readonly ip?: string | undefined;
  /** Keeps the process, for example a Worker, alive until the promise settles. */
  readonly waitUntil?: ((promise: Promise<unknown>) => void) | undefined;
}

export type HandlerResult =
  | { readonly matched: false }
  | {
      readonly matched: true;
      readonly response: Response;
    };

/** The part of a Durable Object's `ctx` that is used. */
export interface DurableObjectContext {
  readonly storage: {
    readonly sql: {
      exec(
        query: string,
        ...bindings: (string | number | null | Uint8Array)[]
      ): { toArray(): Record<string, string | number | null | ArrayBuffer>[] };
    };
    transactionSync<T>(work: () => T): T;
    /** @param instant - Unix ms. It replaces the alarm that was set before */
    setAlarm(instant: number): Promise<void>;
  };
  waitUntil(promise: Promise<unknown>): void;
}

/** Serves HTTP, independently of the server that calls it. */
export interface HttpHandler {
  /** Answers every request. A path that is not the handler's is answered with 404. Never rejects. */
  fetch(request: Request, host?: HostInfo): Promise<Response>;
  /** Like `fetch`, but leaves paths that are not the handler's to the host, and does not read their body. Never rejects. */
  handle(request: Request, host?: HostInfo): Promise<HandlerResult>;
}

/** Asks whether a number of further bytes may be kept. */
export type TakeBytes = (bytes: number) => boolean;

/** A request in plain parts. */
export interface PlainRequest {
  /** In upper case. */
  readonly method: string;
  /** As a URL parser writes it: from `/` on, without dot segments, with the percent-encoding unchanged. */
  readonly path: string;
  /** The text after `?`. Empty without one. */
  readonly query: string;
  /** The part of the path that the host removed from its start, as Express does for a mount. Otherwise empty. */
  readonly mount: string;
  /** The value of a header. Several values of one name are joined with `, `. @param name - in lower case */
  header(name: string): string | undefined;
  /** The request as the platform's `Request`, without its body. The path is the one that the host received. @throws for unsupported headers */
  withoutBody(): Request;
  /** Whether the request has a body, which may be empty. */
  readonly hasBody: boolean;
  /** Whether a body parser of the host has read the bytes. Then `body` gives the parser's value as JSON. */
  readonly isParsed?: boolean;
  /**
   * Reads the whole body, once. It takes memory of about the body's size, however small the chunks are. Returns undefined as soon as
   * `take` refuses a chunk: then the rest is not kept.
   * @param take - called with the number of bytes of each chunk, before the chunk is kept
   * @throws if the body ends early; {@link bodyWasRead} if it was read before
   */
  body(take: TakeBytes): MaybePromise<Uint8Array | undefined>;
}

export const BODY_WAS_READ =
  'the body was read before the handler got the request, so its bytes are lost and no signature can be checked; put the handler first: in Express, `app.use(toNodeListener(handler))` before `app.use(express.json())`';

export function bodyWasRead(): OrchestratorError {
  return new OrchestratorError('NOT_CONFIGURED', BODY_WAS_READ);
}

/** The property of a `Request` that holds `PlainRequest.isParsed`. */
export const IS_PARSED: unique symbol = Symbol.for('ensemble-orchestrator.is-parsed');

/** How long the peer may take nothing of an answer whose end counts (`sent`), or of a stream. */
export const STALL_MS = 30_000;

export interface PlainAnswer {
  readonly status: number;
  /** Names in lower case, each once. The receiver may add to them. */
  readonly headers: Record<string, string>;
  /** A receiver that can't deliver a stream any more cancels it. */
  readonly body: string | ReadableStream<Uint8Array> | undefined;
  /** Called once when the receiver needs the body no longer: it was sent, or the peer is gone. */
  readonly sent?: (() => void) | undefined;
}

/**
 * Answers a plain request. Returns undefined if the path is not the handler's and `ownPathsOnly` is set. It may need the storage to
 * know that: then it is the promise that resolves to undefined. Never rejects.
 */
export type RawHandler = (
  request: PlainRequest,
  host: HostInfo,
  ownPathsOnly: boolean,
) => Promise<PlainAnswer | undefined> | undefined;

/**
 * The property of a handler that holds its {@link RawHandler}. It is an own property and not enumerable: an object that copies a
 * handler to wrap its `fetch` must not copy a way around the wrapper.
 */
export const RAW_HANDLER: unique symbol = Symbol.for('ensemble-orchestrator.raw-handler');

/** The raw handler of a handler that has one of its own. */
export function rawHandlerOf(handler: HttpHandler): RawHandler | undefined {
  return Object.hasOwn(handler, RAW_HANDLER) ? (handler as { [RAW_HANDLER]?: RawHandler })[RAW_HANDLER] : undefined;
}
