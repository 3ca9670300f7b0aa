/** Five trivial steps without expressions. Each reads the input of the execution. */

import { stepsCase } from './steps.mjs';

export const setup = () => stepsCase(5);
