import { defineScript } from 'ensemble-orchestrator';
import * as z from 'zod';

const SAME_DAY = ['Lyon', 'Paris'];

/** Returns the day of the pickup. */
export default defineScript({
  input: z.object({ city: z.string() }),
  output: z.object({ pickup: z.enum(['today', 'tomorrow']) }),
  run: ({ input: { city } }) => ({ pickup: SAME_DAY.includes(city) ? 'today' : 'tomorrow' }),
});
