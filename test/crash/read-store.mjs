/** Reads all executions of a store, without running any. */

import { isDecision, toEnd, toStored } from './watched-storage.mjs';

const PAGE = 250;
const UNENDED = ['queued', 'running', 'waiting'];

/** Ids of the executions that have not ended. */
export async function listUnended(storage) {
  const ids = [];
  for (const status of UNENDED) for await (const { id } of listExecutions(storage, { status })) ids.push(id);
  return ids;
}

/** @returns what is stored of each execution, the state of each ensemble, and how many ends were counted, by `ensemble status` */
export async function readStore(storage, ensembles) {
  const executions = [];
  for await (const record of listExecutions(storage, {})) executions.push(await readOne(storage, record));
  const states = {};
  for (const name of ensembles) states[name] = (await storage.state.read(name))?.value;
  return { executions, states, counts: await readCounts(storage) };
}

/** How many ends were counted: `ensemble status count`, in order. */
async function readCounts(storage) {
  const { tallies, ends } = await storage.tallies.read({ since: 0, until: Number.MAX_SAFE_INTEGER });
  const counts = new Map();
  const add = (ensemble, status, count) =>
    counts.set(`${ensemble} ${status}`, (counts.get(`${ensemble} ${status}`) ?? 0) + count);
  for (const { tally } of tallies)
    for (const [status, count] of Object.entries(tally.counts)) add(tally.ensemble, status, count);
  for (const { ensemble, status, count } of ends) add(ensemble, status, count);
  return counts;
}

export async function readOne(storage, record) {
  const { id, ensemble, status } = record;
  const records = await storage.executions.listSteps(id, { limit: 1000, notes: true });
  const agents = records.filter((step) => !isDecision(step)).map(({ name }) => name);
  const steps = records.map((step) => ({ ...toStored(id, step), name: step.name, nonce: step.output?.nonce }));
  return { id, ensemble, status, error: record.error, end: toEnd(record), agents, steps };
}

/** The executions of a filter, newest first. */
export async function* listExecutions(storage, filter) {
  let before;
  for (;;) {
    const page = await storage.executions.list({ ...filter, limit: PAGE, ...(before && { before }) });
    yield* page;
    if (page.length < PAGE) return;
    const { createdAt, id } = page.at(-1);
    before = { createdAt, id };
  }
}
