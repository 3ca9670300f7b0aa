/** All scenarios, in the order in which they run. */

import { blocked } from './blocked.mjs';
import { claims } from './claims.mjs';
import { deliveries } from './deliveries.mjs';
import { hung } from './hung.mjs';
import { jobs } from './jobs.mjs';
import { poison } from './poison.mjs';
import { random } from './random.mjs';
import { restartPostgres } from './restart-postgres.mjs';
import { stop } from './stop.mjs';
import { zombie } from './zombie.mjs';

/** The numbers are the defaults for `--seconds`, `--cycles` and `--executions`. */
export const SCENARIOS = [
  { ...random, seconds: 20 },
  poison,
  { ...claims, executions: 10_000 },
  { ...zombie, cycles: 10 },
  hung,
  { ...blocked, cycles: 3 },
  { ...deliveries, executions: 500 },
  { ...jobs, executions: 5_000 },
  { ...stop, cycles: 10 },
  { ...restartPostgres, seconds: 20 },
];
