/** The smoke test as a Worker. Its orchestrators are created at module level, outside of any request. */

import { smoke } from './smoke.mjs';

export default {
  async fetch() {
    try {
      return Response.json(await smoke());
    } catch (error) {
      return new Response(String(error?.stack ?? error), { status: 500 });
    }
  },
};
