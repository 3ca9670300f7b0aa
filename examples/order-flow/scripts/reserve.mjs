/** Takes an order's goods off the shelf. */
export default function reserve({ input: { order } }) {
  return { reservation: `R-${order}` };
}
