const SAME_DAY = ['Lyon', 'Paris'];

/** Returns the day of the pickup. */
export default function courier({ input: { city } }) {
  return { pickup: SAME_DAY.includes(city) ? 'today' : 'tomorrow' };
}
