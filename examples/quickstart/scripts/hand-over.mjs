/** Hands an order to a person. `idempotencyKey` is the same on every retry, so that a ticket system can open only one ticket. */
export default function handOver({ input: { order, reasons }, idempotencyKey }) {
  return {
    ticket: `T-${order}-${idempotencyKey.slice(0, 6)}`,
    note: `Please look at order ${order}: ${reasons.join(', ')}.`,
  };
}
