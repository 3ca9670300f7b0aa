import { defineScript } from 'ensemble-orchestrator';
import * as z from 'zod';

/** Hands an order to a person. `idempotencyKey` is the same on every retry, so that a ticket system can open only one ticket. */
export default defineScript({
  input: z.object({ order: z.string(), reasons: z.array(z.string()) }),
  output: z.object({ ticket: z.string(), note: z.string() }),
  run: ({ input: { order, reasons }, idempotencyKey }) => ({
    ticket: `T-${order}-${idempotencyKey.slice(0, 6)}`,
    note: `Please look at order ${order}: ${reasons.join(', ')}.`,
  }),
});
