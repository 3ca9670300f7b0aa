import { defineScript } from 'ensemble-orchestrator';
import * as z from 'zod';

const prices = z.record(z.string(), z.number());
const offer = z.object({ sku: z.string(), price: z.number() });

/** Compares the offers with the known prices. A shop that did not answer keeps its known prices. */
export default defineScript({
  input: z.object({ known: prices, shops: z.record(z.string(), z.array(offer).nullable()) }),
  output: z.object({
    prices,
    drops: z.array(z.object({ shop: z.string(), sku: z.string(), from: z.number(), to: z.number() })),
    offers: z.number(),
    silent: z.array(z.string()),
  }),
  run({ input: { known, shops } }) {
    const now = { ...known };
    const drops = [];
    let offers = 0;
    for (const [shop, list] of Object.entries(shops)) {
      for (const { sku, price } of list ?? []) {
        const key = `${shop}/${sku}`;
        if (price < now[key]) drops.push({ shop, sku, from: now[key], to: price });
        now[key] = price;
        offers += 1;
      }
    }
    const silent = Object.keys(shops).filter((shop) => !shops[shop]);
    return { prices: now, drops, offers, silent };
  },
});
