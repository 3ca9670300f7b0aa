/** Checks whether a card is valid. */
export default function checkCard({ input: { card } }) {
  if (card === 'expired') throw new Error('the card has expired');
  return { card, good: true };
}
