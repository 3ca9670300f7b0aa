/** Releases the reserved goods of an order. */
export default function release({ input: { order } }) {
  return { released: `R-${order}` };
}
