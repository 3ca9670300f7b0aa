/** Tickets for event streams: each lets its holder read the events of one execution, for callers that can't send a header. */

import { bytesToHex } from '@noble/hashes/utils.js';
import { hasScope, type Principal, TICKET_KEY_ID, type TokenScope } from '../../engine/access/token.ts';
import type { TokenStore } from '../../engine/access/token-store.port.ts';
import { isOrchestratorError, OrchestratorError } from '../../engine/base/errors.ts';
import type { Clock } from '../../engine/host/clock.port.ts';
import { readSigned, signText } from '../../engine/signing/signed-text.ts';

export interface EventTicket {
  /** For a URL: letters, digits, `-`, `_` and one dot. */
  readonly ticket: string;
  /** Unix ms: 60 seconds after its creation. */
  readonly expiresAt: number;
}

export interface EventTickets {
  /** @param holder - who asked for it */
  create(executionId: string, holder: string | undefined): Promise<EventTicket>;
  /**
   * Who reads with a ticket.
   * @param isOpen - the stream is open already: the ticket may have expired since then
   * @throws UNAUTHORIZED; TOKEN_EXPIRED
   */
  verify(executionId: string, ticket: string, isOpen: boolean): Promise<Principal>;
}

const LIFETIME_MS = 60_000;
const PURPOSE = 'event-ticket.1.';
const SCOPE: TokenScope = 'read:executions';
/** A holder with the id of a token loses the ticket together with the token. */
const TOKEN_ID = /^tok_[0-9A-Z]{26}$/;

type Content = readonly [executionId: string, expiresAt: number, holder: string | null];

export function createEventTickets(store: TokenStore, clock: Clock): EventTickets {
  // Every process that uses the store signs with the stored key.
  let key: string | undefined;
  const findKey = async () => {
    key ??= (await store.get(TICKET_KEY_ID))?.digest;
    return key;
  };
  const makeKey = async () => {
    const digest = bytesToHex(crypto.getRandomValues(new Uint8Array(32)));
    const about = { name: 'signs the tickets of event streams', scopes: [], plan: 'free', last4: '' } as const;
    try {
      await store.put({ id: TICKET_KEY_ID, digest, ...about, createdAt: clock.now() });
    } catch (thrown) {
      // Another process has stored a key.
      if (!isOrchestratorError(thrown, 'CONFLICT')) throw thrown;
    }
    return (await findKey()) ?? digest;
  };

  return {
    async create(executionId, holder) {
      const expiresAt = clock.now() + LIFETIME_MS;
      const secret = (await findKey()) ?? (await makeKey());
      return { ticket: signText([executionId, expiresAt, holder ?? null], PURPOSE, secret), expiresAt };
    },
    async verify(executionId, ticket, isOpen) {
      const secret = await findKey();
      const content = secret === undefined ? undefined : readSigned(ticket, PURPOSE, [secret]);
      const [of, expiresAt, holder] = (content ?? ['', 0, null]) as unknown as Content;
      if (of !== executionId) {
        throw new OrchestratorError('UNAUTHORIZED', 'the ticket is not valid for the events of this execution');
      }
      const now = clock.now();
      if (!isOpen && now >= expiresAt) {
        throw new OrchestratorError('TOKEN_EXPIRED', 'the ticket has expired; ask for another one', {
          details: { expiredAt: expiresAt },
        });
      }
      const principal = { tokenId: holder ?? `ticket:${of}`, name: 'ticket', scopes: [SCOPE], plan: 'free' } as const;
      if (holder === null || !TOKEN_ID.test(holder)) return principal;
      const token = await store.get(holder);
      if (token && hasScope({ ...principal, scopes: token.scopes }, SCOPE) && now < (token.expiresAt ?? Infinity)) {
        return { ...principal, plan: token.plan };
      }
      throw new OrchestratorError('UNAUTHORIZED', 'the API token that asked for this ticket is not valid any more');
    },
  };
}
