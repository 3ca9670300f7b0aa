/** A Worker whose agents think with Workers AI, over a binding in its wire format. It answers with what the runs gave and sent. */

import { createOrchestrator } from 'ensemble-orchestrator';
import { aiModels } from 'ensemble-orchestrator/ai';
import { createWorkersAI } from 'workers-ai-provider';
import { aiBinding, inferenceError, USAGE } from './ai-binding.ts';

const MODEL = '@cf/meta/llama-3.3-70b-instruct-fp8-fast';
const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };

const ENSEMBLES = [
  {
    name: 'tools',
    agents: [{ name: 'weather', operation: 'code', config: { script: 'weather' } }],
    flow: [
      {
        agent: 'ask',
        operation: 'think',
        config: { model: MODEL, prompt: 'Does it rain in ${input.city}?', tools: [{ agent: 'weather', parameters }] },
      },
    ],
    outputs: { text: '${ask.output.text}' },
  },
  {
    name: 'stream',
    flow: [
      {
        agent: 'ask',
        operation: 'think',
        config: { model: MODEL, prompt: 'Hello', stream: true },
        retry: { maxAttempts: 2, backoff: 'fixed', delay: 1 },
      },
    ],
    outputs: { text: '${ask.output.text}' },
  },
];

async function run(env) {
  const models = { workers: aiModels(createWorkersAI({ binding: env.AI })) };
  const scripts = { weather: ({ input }) => ({ rain: input.city === 'Oslo' }) };
  const orchestrator = createOrchestrator({ ensembles: ENSEMBLES, models, scripts });
  const deltas = [];
  orchestrator.on('agent.delta', ({ data }) => deltas.push(data.text));
  const tools = await orchestrator.execute('tools', { city: 'Oslo' });
  const stream = await orchestrator.execute('stream');
  return {
    tools: [tools.status, tools.output.text, tools.metrics.usage.inputTokens],
    result: env.AI.calls[1].inputs.messages.at(-1).content,
    stream: [stream.status, stream.output.text, stream.agents[0].attempts],
    deltas: deltas.join(''),
  };
}

export default {
  async fetch() {
    const AI = aiBinding(
      { response: null, tool_calls: [{ name: 'weather', arguments: { city: 'Oslo' } }], usage: USAGE },
      { response: 'Yes.', usage: USAGE },
      inferenceError('3040: Capacity temporarily exceeded, please try again.'),
      [{ response: 'Hel' }, { response: 'lo.' }, { response: '', usage: USAGE }, '[DONE]'],
    );
    try {
      return Response.json(await run({ AI }));
    } catch (error) {
      return new Response(String(error?.stack ?? error), { status: 500 });
    }
  },
};
