/** `POST execute` of five trivial steps through the handler, without a socket: token, body, run, answer. */

import { post, serviceCase } from './http-service.mjs';

export async function setup() {
  const { handler, token } = await serviceCase();
  const request = post(token);
  return {
    async run() {
      const response = await handler.fetch(new Request('http://localhost/api/v1/execute/ensemble/bench', request));
      const { status } = await response.json();
      if (status !== 'completed') throw new Error(`the status of the run is ${status}`);
    },
  };
}
