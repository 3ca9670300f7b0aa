import { defineScript } from 'ensemble-orchestrator';
import * as z from 'zod';

/** Gives the text of the component, or fails with it. */
export default defineScript({
  output: z.string(),
  run({ config }) {
    if (config.text.startsWith('broken')) throw new Error(config.text);
    return config.text;
  },
});
