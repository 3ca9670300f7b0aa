import { defineScript } from 'ensemble-orchestrator';
import * as z from 'zod';

/** Writes a message to the buyer. */
export default defineScript({
  input: z.object({ order: z.string(), why: z.string(), failed: z.string() }),
  output: z.string(),
  run: ({ input: { order, why, failed } }) => `Order ${order}: we are sorry, ${why} (${failed}).`,
});
