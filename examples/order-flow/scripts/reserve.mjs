import { defineScript } from 'ensemble-orchestrator';
import * as z from 'zod';

/** Reserves the goods of an order. */
export default defineScript({
  input: z.object({ order: z.string() }),
  output: z.object({ reservation: z.string() }),
  run: ({ input: { order } }) => ({ reservation: `R-${order}` }),
});
