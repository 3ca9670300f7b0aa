/** Five trivial steps without expressions: each reads the input of the run. */

import { stepsCase } from './steps.mjs';

export const setup = () => stepsCase(5);
