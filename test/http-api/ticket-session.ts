/** A service with a running execution and a token that may read it, for the tests of tickets. */

import type { Storage } from '../../src/engine/storage/storage.port.ts';
import type { HandlerOptions } from '../../src/http-handlers/handler-options.ts';
import type { Ask, Host } from './hosts.ts';
import { createService, type JsonResponse, readResponse, type Service } from './service.ts';

export interface Session {
  readonly service: Service;
  readonly clock: Service['clock'];
  readonly ask: Ask;
  /** The id of the execution. */
  readonly id: string;
  readonly tokenId: string;
  /** Asks for a ticket with the token. */
  ticket(of?: string): Promise<JsonResponse>;
  /** Opens the event stream without any header of the caller. */
  follow(ticket: string, of?: string, after?: string): Promise<Response>;
}

/** @param options - `isOther`: another process of the same store, which starts no execution */
export async function openSession(
  open: Host['open'],
  options: { readonly handler?: HandlerOptions; readonly storage?: Storage; readonly isOther?: boolean } = {},
): Promise<Session> {
  const { handler = {}, storage, isOther } = options;
  const service = createService(handler, storage ? { storage } : {});
  const ask = await open(service.handler);
  const { token, id: tokenId } = await service.orchestrator.tokens.create({
    name: 'reader',
    scopes: ['read:executions'],
  });
  let id = '';
  if (!isOther) {
    const begun = service.begun();
    id = (await service.orchestrator.start('slow')).id;
    await begun;
  }
  const headers = { authorization: `Bearer ${token}` };
  return {
    ...{ service, clock: service.clock, ask, id, tokenId },
    ticket: (of = id) => readResponse(ask(`/api/v1/executions/${of}/events/ticket`, { method: 'POST', headers })),
    follow: (ticket, of = id, after) =>
      ask(`/api/v1/executions/${of}/events?ticket=${ticket}${after === undefined ? '' : `&after=${after}`}`),
  };
}
