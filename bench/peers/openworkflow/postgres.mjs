/** OpenWorkflow on Postgres. */

import { BackendPostgres } from 'openworkflow/postgres';
import { fiveSteps } from './five-steps.mjs';

export const setup = async ({ postgres, concurrency }) =>
  fiveSteps(await BackendPostgres.connect(postgres), concurrency);
