/** The points at which a process is killed. */

const before = (name, about) => ({ point: `${name}:before`, ...about });
const after = (name, about) => ({ point: `${name}:after`, ...about });

/** One process queues the executions, and the next runs them, one at a time. */
const QUEUED = { isQueued: true, phase: 'recovery', concurrency: 1 };

/**
 * | key | meaning |
 * |---|---|
 * | `phase` | the phase in which passes count: `work` (default), `recovery` of what an earlier kill left, `close`, `migration` |
 * | `ensemble`, `count` | what runs: executions of `line` (default) one after the other; those of other ensembles at the same time |
 * | `nth` | the smallest and the largest pass at which the process dies; drawn at random |
 * | `repeats` | an effect whose result is not stored yet may be repeated; without it, no effect may be repeated |
 * | `delayUs`, `statement` | how the process dies, see `createFaults`; smallest and largest value, drawn at random |
 * | `concurrency` | the concurrency of the engine |
 * | `isQueued` | a process before this one queues the executions |
 * | `stores` | the kinds of stores; default: all |
 */
export const POINTS = [
  { name: 'start:before', ...before('start', { nth: [1, 3] }) },
  { name: 'enqueue:before', ...before('enqueue', { nth: [1, 3], concurrency: 0 }) },
  { name: 'start:after', ...after('start', { nth: [1, 3] }) },
  { name: 'enqueue:after', ...after('enqueue', { nth: [1, 3], concurrency: 0 }) },
  { name: 'claim:before', ...before('claim', { nth: [1, 2], ...QUEUED }) },
  { name: 'claim:after', ...after('claim', { nth: [1, 2], ...QUEUED }) },
  { name: 'script:begin', point: 'script:begin', nth: [1, 10] },
  { name: 'script:effect', point: 'script:effect', ensemble: 'order', nth: [1, 30], repeats: true },
  { name: 'step:before', ...before('step', { ensemble: 'order', nth: [1, 6], repeats: true }) },
  { name: 'retry:before', ...before('retry', { nth: [1, 3], repeats: true }) },
  { name: 'state:before', ...before('state', { nth: [1, 3], repeats: true }) },
  { name: 'step:after', ...after('step', { nth: [1, 10] }) },
  { name: 'step:after, of several', ...after('step', { ensemble: 'order', nth: [1, 6], repeats: true }) },
  { name: 'decision:before', ...before('decision', { nth: [1, 3] }) },
  { name: 'decision:after', ...after('decision', { nth: [1, 3] }) },
  { name: 'state:after', ...after('state', { nth: [1, 3] }) },
  { name: 'retry:after', ...after('retry', { nth: [1, 3] }) },
  // The other thread may be late, and kill the process after the next effect.
  { name: 'retry, in the wait', ...after('retry', { nth: [1, 3], delayUs: [100, 18_000], repeats: true }) },
  { name: 'release:before', ...before('release', { ensemble: 'suspending', count: 1, nth: [1, 1] }) },
  { name: 'release:after', ...after('release', { ensemble: 'suspending', count: 1, nth: [1, 1] }) },
  {
    name: 'release, in the wait',
    ...after('release', { ensemble: 'suspending', count: 1, nth: [1, 1], delayUs: [100, 120_000], repeats: true }),
  },
  {
    name: 'commit, between rows',
    point: 'commit:within',
    ensemble: 'order',
    nth: [1, 6],
    statement: [1, 6],
    repeats: true,
  },
  // Between the change of the state and the result that belongs to it.
  { name: 'state, between rows', ...before('state', { nth: [1, 3], statement: [2, 5], repeats: true }) },
  {
    name: 'commit, at any moment',
    point: 'commit:any',
    ensemble: 'order',
    nth: [1, 8],
    delayUs: [0, 5000],
    repeats: true,
  },
  // The last step is stored with the end, so its effect may be repeated.
  { name: 'end:before', ...before('end', { nth: [1, 3], repeats: true }) },
  { name: 'end:after', ...after('end', { nth: [1, 3] }) },
  { name: 'count:before', ...before('count', { nth: [1, 1], phase: 'recovery', repeats: true }) },
  { name: 'count:after', ...after('count', { nth: [1, 1], phase: 'recovery', repeats: true }) },
  {
    name: 'count, between rows',
    ...before('count', { nth: [1, 1], phase: 'recovery', statement: [1, 8], repeats: true }),
  },
  ...[
    before('register', { nth: [1, 1] }),
    after('register', { nth: [1, 1] }),
    before('reclaim', { nth: [1, 3] }),
    after('reclaim', { nth: [1, 3] }),
    // After executions of a dead worker were freed. In SQLite, `workers.register` frees them.
    { point: 'freed', nth: [1, 1], stores: ['postgres'] },
    // Any statement.
    { point: 'registered', nth: [1, 1], statement: [1, 60] },
    before('claim', { nth: [1, 2] }),
    after('claim', { nth: [1, 1] }),
    before('replay', { nth: [1, 1] }),
    after('replay', { nth: [1, 2] }),
    before('step', { nth: [1, 2] }),
    after('step', { nth: [1, 2] }),
    after('end', { nth: [1, 2] }),
    { point: 'script:effect', nth: [1, 6] },
    { point: 'commit:any', nth: [1, 4], delayUs: [0, 5000] },
  ].map((about) => ({
    name: `recovery, ${about.statement ? 'any statement' : about.point}`,
    phase: 'recovery',
    ensemble: 'order',
    repeats: true,
    ...about,
  })),
  ...[
    before('release', { nth: [1, 1] }),
    after('release', { nth: [1, 1] }),
    before('unregister', { nth: [1, 1] }),
    after('unregister', { nth: [1, 1] }),
    { point: 'close', nth: [1, 1], delayUs: [0, 60_000] },
  ].map((about) => ({
    name: `close, ${about.point}`,
    phase: 'close',
    ensemble: 'order',
    repeats: true,
    ...about,
  })),
  ...[
    { name: 'schema, between statements', statement: [1, 16] },
    { name: 'schema, at any moment', delayUs: [0, 40_000] },
  ].map((about) => ({ phase: 'migration', point: 'open', nth: [1, 1], repeats: true, ...about })),
];

/** The points of the first kill, after which a `recovery` begins. */
export const FIRST_KILLS = [
  { point: 'script:effect', nth: [4, 26] },
  { point: 'step:before', nth: [2, 6] },
  { point: 'step:after', nth: [2, 6] },
  { point: 'state:after', nth: [1, 3] },
  { point: 'end:before', nth: [1, 1] },
];
