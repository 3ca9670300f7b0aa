/** Puts an order's goods back on the shelf. */
export default function release({ input: { order } }) {
  return { released: `R-${order}` };
}
