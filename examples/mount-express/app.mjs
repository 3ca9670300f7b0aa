import { toNodeListener } from 'ensemble-orchestrator/node';
import express from 'express';
import { handler } from './service.mjs';

export const app = express();

// Before the body parsers: the handler reads its own bodies, and leaves all others to the app.
app.use(toNodeListener(handler));
app.use(express.json());
app.get('/', (_request, response) => response.send('my own page'));
