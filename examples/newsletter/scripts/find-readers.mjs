import { defineScript } from 'ensemble-orchestrator';
import * as z from 'zod';

/** The readers of the list. In an app, a query of its database. */
export default defineScript({
  output: z.array(z.object({ email: z.string(), name: z.string(), token: z.string() })),
  run: () => [
    { email: 'ada@example.com', name: 'Ada', token: 'r/1' },
    { email: 'bob@example.com', name: '<b>Bob</b>', token: 'r/2' },
    { email: 'carl@example.com, everybody@example.com', name: 'Carl', token: 'r/3' },
    { email: 'dora@example.com', name: 'Dora', token: 'r/4' },
    { email: 'gone@example.com', name: 'Gone', token: 'r/5' },
  ],
});
