import { defineScript } from 'ensemble-orchestrator';
import * as z from 'zod';

/** Checks whether a card is valid. */
export default defineScript({
  input: z.object({ card: z.string() }),
  output: z.object({ card: z.string(), good: z.boolean() }),
  run({ input: { card } }) {
    if (card === 'expired') throw new Error('the card has expired');
    return { card, good: true };
  },
});
