/** The host port: how a server hands requests to a handler, as the platform's `Request`, or as plain parts where that is cheaper. */

import type { MaybePromise } from './operation.ts';

/** What the host knows of a request beside the request itself. */
export interface HostInfo {
  /** Address of the peer's socket, without a port. */
  readonly ip?: string | undefined;
  /** Keeps the process (a Worker's, say) alive until the promise settles. */
  readonly waitUntil?: ((promise: Promise<unknown>) => void) | undefined;
}

export type HandlerResult =
  | { readonly matched: false }
  | {
      readonly matched: true;
      readonly response: Response;
    };

/** Serves HTTP; knows nothing of the server that it stands behind. */
export interface HttpHandler {
  /** Answers every request; a path that is not the handler's gives its 404. Never rejects. */
  fetch(request: Request, host?: HostInfo): Promise<Response>;
  /** As `fetch`, but leaves paths that are not the handler's to the host: their body is not touched then. Never rejects. */
  handle(request: Request, host?: HostInfo): Promise<HandlerResult>;
}

/** Whether so many further bytes may be kept. */
export type TakeBytes = (bytes: number) => boolean;

/** A request in plain parts. */
export interface PlainRequest {
  /** In upper case. */
  readonly method: string;
  /** As a URL parser writes it: from `/` on, no dot segments, percent-encoding left as it is. */
  readonly path: string;
  /** What stands behind `?`; empty without one. */
  readonly query: string;
  /** The part of the path that the host has cut off in front (Express does for a mount); empty otherwise. */
  readonly mount: string;
  /** A header's value; several of one name are joined with `, `. @param name - in lower case */
  header(name: string): string | undefined;
  /** Whether a body comes; it may still be empty. */
  readonly hasBody: boolean;
  /**
   * The whole body, read once, in memory of about its size however small its chunks are; undefined as soon as `take` refuses
   * what has come, and the rest is not kept then.
   * @param take - is told how many bytes have come with each chunk, before they are kept
   * @throws when the body breaks off
   */
  body(take: TakeBytes): MaybePromise<Uint8Array | undefined>;
}

export interface PlainAnswer {
  readonly status: number;
  /** Names in lower case, each once. The receiver's to add to. */
  readonly headers: Record<string, string>;
  /** A stream is cancelled by whoever can't deliver it any more. */
  readonly body: string | ReadableStream<Uint8Array> | undefined;
}

/** Answers a plain request; undefined when the path is not the handler's and `ownPathsOnly` is set. Never rejects. */
export type PlainDoor = (
  request: PlainRequest,
  host: HostInfo,
  ownPathsOnly: boolean,
) => Promise<PlainAnswer> | undefined;

/**
 * Where a handler keeps its {@link PlainDoor}: an own property that is not enumerable, so that an object which copies a
 * handler to wrap its `fetch` does not keep the way round it.
 */
export const PLAIN_DOOR: unique symbol = Symbol.for('ensemble-orchestrator.plain-door');

/** The plain door of a handler that has one of its own. */
export function plainDoorOf(handler: HttpHandler): PlainDoor | undefined {
  return Object.hasOwn(handler, PLAIN_DOOR) ? (handler as { [PLAIN_DOOR]?: PlainDoor })[PLAIN_DOOR] : undefined;
}
