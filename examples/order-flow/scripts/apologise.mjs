/** Writes a message to the buyer. */
export default function apologise({ input: { order, why, failed } }) {
  return `Order ${order}: we are sorry, ${why} (${failed}).`;
}
