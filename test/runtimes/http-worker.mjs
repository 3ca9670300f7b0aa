/** The HTTP cases as a Worker: `/cases?peer=URL` counts them, and `/run?peer=URL&from=0&to=10` runs some of them. */

import { fetchHttp } from 'ensemble-orchestrator';
import { httpCases, outcomeOf } from './http-cases.mjs';

export default {
  async fetch(request) {
    const { pathname, searchParams } = new URL(request.url);
    const cases = httpCases(searchParams.get('peer'), { fetchHttp });
    if (pathname === '/cases') return Response.json(cases.length);
    const outcomes = [];
    for (const one of cases.slice(Number(searchParams.get('from')), Number(searchParams.get('to'))))
      outcomes.push(await outcomeOf(one));
    return Response.json(outcomes);
  },
};
