import { createServer } from 'node:http';

const PAGES = {
  tides: 'The moon pulls the water of the sea, so there are two high tides a day.',
  moon: 'The moon moves away from the earth by 3.8 cm a year.',
};
const TOOLS = [
  { name: 'search', description: 'Finds pages', key: 'query' },
  { name: 'read_page', description: 'Reads a page', key: 'page' },
].map(({ name, description, key }) => ({
  name,
  description,
  inputSchema: { type: 'object', properties: { [key]: { type: 'string' } }, required: [key] },
}));

/** What stands for the model of the researcher: its next move, by the number of the results that it has. */
const MOVES = [
  () => ({ name: 'search', arguments: { query: 'tides and the moon' } }),
  () => ({ name: 'read_page', arguments: { page: 'tides' } }),
  () => ({ name: 'read_page', arguments: { page: 'moon' } }),
  (results) => ({ name: 'sum-up', arguments: { text: results.slice(1).join(' ') } }),
];

function answer({ messages, model }) {
  const results = messages.filter(({ role }) => role === 'tool').map(({ content }) => content);
  const move = model === 'gpt-4o' ? MOVES[results.length]?.(results) : undefined;
  if (!move) {
    const text =
      model === 'gpt-4o' ? `The library says: ${JSON.parse(results.at(-1)).text}.` : 'tides come from the moon';
    return { message: { role: 'assistant', content: text }, finish_reason: 'stop' };
  }
  const call = { name: move.name, arguments: JSON.stringify(move.arguments) };
  const id = `call-${results.length + 1}`;
  const message = { role: 'assistant', content: null, tool_calls: [{ id, type: 'function', function: call }] };
  return { message, finish_reason: 'tool_calls' };
}

function runTool(name, { query, page }) {
  return name === 'search' ? { found: Object.keys(PAGES), query } : PAGES[page];
}

/**
 * Starts a model server with the chat/completions API, and a tool server, both on one free port of this machine.
 *
 * @param hold - called with each call of a tool before it is answered; a promise delays the answer
 */
export async function startLocalServer(hold) {
  const calls = [];
  const server = createServer(async (request, response) => {
    const reply = (status, body) => {
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(JSON.stringify(body));
    };
    let text = '';
    for await (const chunk of request) text += chunk;
    const body = text === '' ? {} : JSON.parse(text);
    if (request.url === '/v1/chat/completions') {
      calls.push({ what: `model ${body.model}` });
      const usage = { prompt_tokens: 20 * body.messages.length, completion_tokens: 10 };
      return reply(200, { model: body.model, choices: [answer(body)], usage });
    }
    if (request.url === '/library/tools') return reply(200, { tools: TOOLS });
    const [, tool] = /^\/library\/tools\/(\w+)$/.exec(request.url) ?? [];
    if (!tool) return reply(404, { error: 'not found' });
    const call = { what: `${tool} ${Object.values(body.arguments)[0]}`, key: request.headers['idempotency-key'] };
    calls.push(call);
    await hold(call);
    return reply(200, { content: runTool(tool, body.arguments), isError: false });
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${server.address().port}`;
  const close = () => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  };
  return { url, calls, close };
}
