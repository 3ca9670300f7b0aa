import { defineScript } from 'ensemble-orchestrator';
import * as z from 'zod';

/** Releases the reserved goods of an order. */
export default defineScript({
  input: z.object({ order: z.string() }),
  output: z.object({ released: z.string() }),
  run: ({ input: { order } }) => ({ released: `R-${order}` }),
});
