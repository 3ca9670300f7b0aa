const SAME_DAY = ['Lyon', 'Paris'];

/** Says when the courier comes. */
export default function courier({ input: { city } }) {
  return { pickup: SAME_DAY.includes(city) ? 'today' : 'tomorrow' };
}
