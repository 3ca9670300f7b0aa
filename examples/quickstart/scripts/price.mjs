import { defineScript } from 'ensemble-orchestrator';
import * as z from 'zod';
import { CATALOG, DISCOUNT_PERCENT } from './_catalog.mjs';

/** Prices one line of an order. What `run` returns is the output of the agent. If it throws, the agent fails. */
export default defineScript({
  input: z.object({ line: z.object({ sku: z.string(), quantity: z.number() }), tier: z.string() }),
  output: z.object({ sku: z.string(), name: z.string(), quantity: z.number(), cents: z.number() }),
  run({ input: { line, tier } }) {
    const item = CATALOG[line.sku];
    if (!item) throw new Error(`there is no article ${line.sku}`);
    const discount = DISCOUNT_PERCENT[tier] ?? 0;
    const cents = Math.round((item.price * line.quantity * (100 - discount)) / 100);
    return { sku: line.sku, name: item.name, quantity: line.quantity, cents };
  },
});
