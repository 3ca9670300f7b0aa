/** Begins a payment. Its key is equal on every retry and after a crash, so that a bank takes the money once. */
export default function charge({ input: { card }, idempotencyKey }) {
  return { card, payment: idempotencyKey };
}
