/** How many streams of events are open at once: of one token, and of all. */

import { OrchestratorError } from '../engine/errors.ts';

export interface StreamSlots {
  /**
   * @returns gives the place back; a second call does nothing
   * @throws OVERLOADED when there is no place
   */
  take(tokenId: string): () => void;
}

export function streamSlots(most: number, mostOfToken: number): StreamSlots {
  const byToken = new Map<string, number>();
  let open = 0;
  const refuse = (limit: number, whose: string): never => {
    const message = `${limit} streams of events are open already, as many as ${whose} may have; close one, or try again later`;
    throw new OrchestratorError('OVERLOADED', message, { details: { limit }, retryable: true });
  };
  return {
    take(tokenId) {
      const own = byToken.get(tokenId) ?? 0;
      if (own >= mostOfToken) refuse(mostOfToken, 'a token');
      if (open >= most) refuse(most, 'this process');
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
