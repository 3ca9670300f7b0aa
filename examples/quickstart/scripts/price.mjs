import { CATALOG, DISCOUNT_PERCENT } from './_catalog.mjs';

/** Prices one line of an order. What a script returns is its agent's output; what it throws fails the agent. */
export default function price({ input: { line, tier } }) {
  const item = CATALOG[line.sku];
  if (!item) throw new Error(`there is no article ${line.sku}`);
  const discount = DISCOUNT_PERCENT[tier] ?? 0;
  const cents = Math.round((item.price * line.quantity * (100 - discount)) / 100);
  return { sku: line.sku, name: item.name, quantity: line.quantity, cents };
}
