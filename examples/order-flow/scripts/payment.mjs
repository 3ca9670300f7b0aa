/** Asks the bank how far a payment is; this one's takes three questions. */
export default function payment({ input: { polls } }) {
  const asked = (polls ?? 0) + 1;
  return { polls: asked, state: asked < 3 ? 'pending' : 'paid' };
}
