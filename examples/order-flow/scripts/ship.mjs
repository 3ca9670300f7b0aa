/** Gives an order to the carrier in the agent's config. */
export default function ship({ input: { order }, config: { carrier, full } }) {
  if (full) throw new Error(`${carrier} has no capacity today`);
  return { tracking: `${carrier}-${order}` };
}
