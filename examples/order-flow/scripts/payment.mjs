import { defineScript } from 'ensemble-orchestrator';
import * as z from 'zod';

/** Polls the bank for the state of a payment. This payment is complete at the third poll. */
export default defineScript({
  input: z.object({ polls: z.number().nullable() }),
  output: z.object({ polls: z.number(), state: z.enum(['pending', 'paid']) }),
  run({ input: { polls } }) {
    const count = (polls ?? 0) + 1;
    return { polls: count, state: count < 3 ? 'pending' : 'paid' };
  },
});
