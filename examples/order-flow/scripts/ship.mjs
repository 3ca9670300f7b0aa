import { defineScript } from 'ensemble-orchestrator';
import * as z from 'zod';

/** Gives an order to the carrier in the agent's config. */
export default defineScript({
  input: z.object({ order: z.string() }),
  output: z.object({ tracking: z.string() }),
  run({ input: { order }, config: { carrier, full } }) {
    if (full) throw new Error(`${carrier} has no capacity today`);
    return { tracking: `${carrier}-${order}` };
  },
});
