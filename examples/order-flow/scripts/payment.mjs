/** Polls the bank for the state of a payment. This payment is complete at the third poll. */
export default function payment({ input: { polls } }) {
  const count = (polls ?? 0) + 1;
  return { polls: count, state: count < 3 ? 'pending' : 'paid' };
}
