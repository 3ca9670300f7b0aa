/** Hands an order to a person. `idempotencyKey` is the same on every retry, so a ticket system could use it to open one only. */
export default function handOver({ input: { order, reasons }, idempotencyKey }) {
  return {
    ticket: `T-${order}-${idempotencyKey.slice(0, 6)}`,
    note: `Please look at order ${order}: ${reasons.join(', ')}.`,
  };
}
