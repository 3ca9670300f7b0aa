/** Mastra: a workflow of five chained steps, without storage. */

import { fiveSteps } from './five-steps.mjs';

export const setup = () => ({ run: fiveSteps() });
