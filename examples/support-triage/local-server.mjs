import { createServer } from 'node:http';

const CUSTOMERS = {
  ada: { name: 'Ada', plan: 'business' },
  bob: { name: 'Bob', plan: 'free' },
};

/** What stands for the model: it looks for words. */
function classify(text) {
  const topic = /invoice|charged|refund/i.test(text) ? 'billing' : /down|offline/i.test(text) ? 'outage' : 'question';
  return { topic, urgent: topic === 'outage', summary: text.split('.')[0] };
}

/** Starts a model server with the chat/completions API, and a tool server, both on one free port of this machine. */
export async function startLocalServer() {
  const server = createServer(async (request, response) => {
    const reply = (status, body) => {
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(JSON.stringify(body));
    };
    let text = '';
    for await (const chunk of request) text += chunk;
    const body = text === '' ? {} : JSON.parse(text);
    if (request.url === '/v1/chat/completions') {
      const content = JSON.stringify(classify(body.messages.at(-1).content));
      const message = { role: 'assistant', content };
      return reply(200, {
        model: body.model,
        choices: [{ message, finish_reason: 'stop' }],
        usage: { prompt_tokens: 60, completion_tokens: 20 },
      });
    }
    if (request.url === '/crm/tools/find_customer') {
      const found = CUSTOMERS[body.arguments.id];
      return reply(200, { content: found ?? { plan: 'none' }, isError: !found });
    }
    return reply(404, { error: 'not found' });
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${server.address().port}`;
  return { url, close: () => new Promise((resolve) => server.close(resolve)) };
}
