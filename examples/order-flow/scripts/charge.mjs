import { defineScript } from 'ensemble-orchestrator';
import * as z from 'zod';

/** Starts a payment. The key is the same on every retry and after a crash, so that the bank charges the card once. */
export default defineScript({
  input: z.object({ card: z.string() }),
  output: z.object({ card: z.string(), payment: z.string() }),
  run: ({ input: { card }, idempotencyKey }) => ({ card, payment: idempotencyKey }),
});
