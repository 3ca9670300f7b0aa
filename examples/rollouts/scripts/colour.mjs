import { defineScript } from 'ensemble-orchestrator';
import * as z from 'zod';

export default defineScript({ output: z.string(), run: ({ config }) => config.colour });
