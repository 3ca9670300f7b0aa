import { toNodeListener } from 'ensemble-orchestrator/node';
import express from 'express';
import { handler } from './service.mjs';

export const app = express();

// In front of body parsers: it reads its bodies itself, and leaves the app's own to the app.
app.use(toNodeListener(handler));
app.use(express.json());
app.get('/', (_request, response) => response.send('my own page'));
