/** Limits how many event streams are open at once: for each token, and in total. */

import { OrchestratorError } from '../../engine/base/errors.ts';

export interface StreamSlots {
  /**
   * @returns a function that frees the slot; a second call has no effect
   * @throws OVERLOADED when no slot is free
   */
  take(tokenId: string): () => void;
}

export function streamSlots(max: number, maxPerToken: number): StreamSlots {
  const byToken = new Map<string, number>();
  let open = 0;
  const refuse = (limit: number, holder: string): never => {
    const message = `event streams: ${holder} has ${limit} open, which is the maximum; close one, or try again later`;
    throw new OrchestratorError('OVERLOADED', message, { details: { limit }, retryable: true });
  };
  return {
    take(tokenId) {
      const own = byToken.get(tokenId) ?? 0;
      if (own >= maxPerToken) refuse(maxPerToken, 'this token');
      if (open >= max) refuse(max, 'this handler');
      open += 1;
      byToken.set(tokenId, own + 1);
      let isOpen = true;
      return () => {
        if (!isOpen) return;
        isOpen = false;
        open -= 1;
        const left = (byToken.get(tokenId) ?? 1) - 1;
        if (left > 0) byToken.set(tokenId, left);
        else byToken.delete(tokenId);
      };
    },
  };
}
