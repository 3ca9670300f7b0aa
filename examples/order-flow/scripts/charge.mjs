/** Starts a payment. The key is the same on every retry and after a crash, so that the bank charges the card once. */
export default function charge({ input: { card }, idempotencyKey }) {
  return { card, payment: idempotencyKey };
}
