/** Makes a handler of a function that finds the routes of a request. */

import { isPromise, type MaybePromise } from '../engine/base/maybe-promise.ts';
import { type HttpHandler, type PlainRequest, RAW_HANDLER, type RawHandler } from '../engine/host/host.port.ts';
import type { HandlerDependencies } from './call.ts';
import { answerRequest } from './pipeline.ts';
import { FetchedRequest, toResponse } from './request/fetch-request.ts';
import type { Found } from './router.ts';

const NO_HOST = Object.freeze({});

/**
 * @param find - returns undefined for a path that is not the handler's. Never rejects
 * @param unknown - what `fetch` answers for such a path
 */
export function toHandler(
  dependencies: HandlerDependencies,
  find: (request: PlainRequest) => MaybePromise<Found | undefined>,
  unknown: (request: PlainRequest) => Found,
): HttpHandler {
  const handleRaw: RawHandler = (request, host, ownPathsOnly) => {
    const answer = (found: Found | undefined) =>
      found !== undefined || !ownPathsOnly
        ? answerRequest(request, host, found ?? unknown(request), dependencies)
        : undefined;
    const found = find(request);
    return isPromise(found) ? found.then(answer) : answer(found);
  };
  return handlerOf(handleRaw, dependencies);
}

/** The handler of a raw handler. */
export function handlerOf(handleRaw: RawHandler, { setTimer }: Pick<HandlerDependencies, 'setTimer'>): HttpHandler {
  const answered = async (request: Request, host: Parameters<RawHandler>[1], ownPathsOnly: boolean) => {
    const answer = await handleRaw(new FetchedRequest(request), host, ownPathsOnly);
    return answer && toResponse(answer, setTimer);
  };
  const handler: HttpHandler = {
    fetch: (request, host = NO_HOST) => answered(request, host, false) as Promise<Response>,
    async handle(request, host = NO_HOST) {
      const response = await answered(request, host, true);
      return response ? { matched: true, response } : { matched: false };
    },
  };
  Object.defineProperty(handler, RAW_HANDLER, { value: handleRaw });
  return handler;
}
