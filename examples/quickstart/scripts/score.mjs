import { defineScript } from 'ensemble-orchestrator';
import * as z from 'zod';

/** Scores an order: a risk from 0 to 100, and its reasons. The parameter `config` has the keys of the agent's `config`. */
export default defineScript({
  input: z.object({ customer: z.object({ orders: z.number() }), lines: z.array(z.object({ cents: z.number() })) }),
  output: z.object({ risk: z.number(), reasons: z.array(z.string()), total: z.number() }),
  run({ input: { customer, lines }, config }) {
    const total = lines.reduce((sum, line) => sum + line.cents, 0) / 100;
    const reasons = [];
    let risk = 10;
    if (customer.orders === 0) {
      risk += 25;
      reasons.push('first order');
    }
    if (total > config.largeOrder) {
      risk += 30;
      reasons.push(`more than ${config.largeOrder} in total`);
    }
    return { risk, reasons, total };
  },
});
