/** Hands an order to the carrier that the agent's config names. */
export default function ship({ input: { order }, config: { carrier, full } }) {
  if (full) throw new Error(`${carrier} has no room today`);
  return { tracking: `${carrier}-${order}` };
}
