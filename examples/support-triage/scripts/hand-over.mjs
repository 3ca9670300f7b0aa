import { defineScript } from 'ensemble-orchestrator';
import * as z from 'zod';

/** Hands a ticket to a team. An app would call its ticket system here, with `idempotencyKey`. */
export default defineScript({
  input: z.object({ urgent: z.boolean() }),
  output: z.object({ ticket: z.string(), key: z.string() }),
  run: ({ input, config, idempotencyKey }) => ({
    ticket: `${config.team}-${input.urgent ? 'urgent' : 'normal'}`,
    key: idempotencyKey,
  }),
});
