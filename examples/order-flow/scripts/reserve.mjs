/** Reserves the goods of an order. */
export default function reserve({ input: { order } }) {
  return { reservation: `R-${order}` };
}
