import { CATALOG, DISCOUNT_PERCENT } from './_catalog.mjs';

/** Prices one line of an order. The return value is the output of the agent. If the script throws, the agent fails. */
export default function price({ input: { line, tier } }) {
  const item = CATALOG[line.sku];
  if (!item) throw new Error(`there is no article ${line.sku}`);
  const discount = DISCOUNT_PERCENT[tier] ?? 0;
  const cents = Math.round((item.price * line.quantity * (100 - discount)) / 100);
  return { sku: line.sku, name: item.name, quantity: line.quantity, cents };
}
