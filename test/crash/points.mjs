/** The points at which a process is killed, by the numbers of the test plan. */

const before = (name, about) => ({ point: `${name}:before`, ...about });
const after = (name, about) => ({ point: `${name}:after`, ...about });

/** Queued by one process, and worked on by the next, one at a time. */
const QUEUED = { isQueued: true, phase: 'recovery', concurrency: 1 };

/**
 * | key | says |
 * |---|---|
 * | `row` | number in the test plan |
 * | `phase` | when passes count: `work` (default), `recovery` of what an earlier kill left, `close`, `migration` |
 * | `ensemble`, `count` | what runs: `line` (default) one after the other, nothing beside it; the others at the same time |
 * | `nth` | the pass at which it dies is drawn from these two numbers |
 * | `repeats` | an effect that is not stored yet may be repeated; otherwise none at all |
 * | `delayUs`, `statement` | how it dies, see `createFaults`; drawn from these two numbers |
 * | `concurrency` | of the engine; `isQueued`: the process before it only queues |
 * | `isOlder` | the store is one of an earlier version |
 * | `stores` | where it is to be found; default: everywhere |
 */
export const POINTS = [
  { name: 'start:before', row: 1, ...before('start', { nth: [1, 3] }) },
  { name: 'enqueue:before', row: 1, ...before('enqueue', { nth: [1, 3], concurrency: 0 }) },
  { name: 'start:after', row: 2, ...after('start', { nth: [1, 3] }) },
  { name: 'enqueue:after', row: 2, ...after('enqueue', { nth: [1, 3], concurrency: 0 }) },
  { name: 'claim:before', row: 3, ...before('claim', { nth: [1, 2], ...QUEUED }) },
  { name: 'claim:after', row: 3, ...after('claim', { nth: [1, 2], ...QUEUED }) },
  { name: 'script:begin', row: 3, point: 'script:begin', nth: [1, 10] },
  { name: 'script:effect', row: 4, point: 'script:effect', ensemble: 'order', nth: [1, 30], repeats: true },
  { name: 'step:before', row: 4, ...before('step', { ensemble: 'order', nth: [1, 6], repeats: true }) },
  { name: 'retry:before', row: 4, ...before('retry', { nth: [1, 3], repeats: true }) },
  { name: 'state:before', row: 4, ...before('state', { nth: [1, 3], repeats: true }) },
  { name: 'step:after', row: 5, ...after('step', { nth: [1, 10] }) },
  { name: 'step:after, of several', row: 5, ...after('step', { ensemble: 'order', nth: [1, 6], repeats: true }) },
  { name: 'note:before', row: 5, ...before('note', { nth: [1, 3] }) },
  { name: 'note:after', row: 5, ...after('note', { nth: [1, 3] }) },
  { name: 'state:after', row: 5, ...after('state', { nth: [1, 3] }) },
  { name: 'retry:after', row: 6, ...after('retry', { nth: [1, 3] }) },
  // Another thread may be late, and strike when the next effect is there.
  { name: 'retry, in the wait', row: 6, ...after('retry', { nth: [1, 3], delayUs: [100, 18_000], repeats: true }) },
  { name: 'release:before', row: 6, ...before('release', { ensemble: 'patient', count: 1, nth: [1, 1] }) },
  { name: 'release:after', row: 6, ...after('release', { ensemble: 'patient', count: 1, nth: [1, 1] }) },
  {
    name: 'release, in the wait',
    row: 6,
    ...after('release', { ensemble: 'patient', count: 1, nth: [1, 1], delayUs: [100, 120_000], repeats: true }),
  },
  {
    name: 'commit, between rows',
    row: 7,
    point: 'commit:within',
    ensemble: 'order',
    nth: [1, 6],
    statement: [1, 6],
    repeats: true,
  },
  // The change of the state and the result that it belongs to.
  { name: 'state, between rows', row: 7, ...before('state', { nth: [1, 3], statement: [2, 5], repeats: true }) },
  {
    name: 'commit, at any moment',
    row: 7,
    point: 'commit:any',
    ensemble: 'order',
    nth: [1, 8],
    delayUs: [0, 5000],
    repeats: true,
  },
  // The last step is stored with the end, so its effect may be repeated.
  { name: 'end:before', row: 8, ...before('end', { nth: [1, 3], repeats: true }) },
  { name: 'end:after', row: 9, ...after('end', { nth: [1, 3] }) },
  ...[
    before('join', { nth: [1, 1] }),
    after('join', { nth: [1, 1] }),
    before('recover', { nth: [1, 3] }),
    after('recover', { nth: [1, 3] }),
    // Another process's executions were freed; in SQLite, `join` does that.
    { point: 'freed', nth: [1, 1], stores: ['postgres'] },
    // Whatever it writes or asks.
    { point: 'joined', nth: [1, 1], statement: [1, 60] },
    before('claim', { nth: [1, 2] }),
    after('claim', { nth: [1, 1] }),
    before('recall', { nth: [1, 1] }),
    after('recall', { nth: [1, 2] }),
    before('step', { nth: [1, 2] }),
    after('step', { nth: [1, 2] }),
    after('end', { nth: [1, 2] }),
    { point: 'script:effect', nth: [1, 6] },
    { point: 'commit:any', nth: [1, 4], delayUs: [0, 5000] },
  ].map((about) => ({
    name: `recovery, ${about.statement ? 'any statement' : about.point}`,
    row: 19,
    phase: 'recovery',
    ensemble: 'order',
    repeats: true,
    ...about,
  })),
  ...[
    before('release', { nth: [1, 1] }),
    after('release', { nth: [1, 1] }),
    before('leave', { nth: [1, 1] }),
    after('leave', { nth: [1, 1] }),
    { point: 'close', nth: [1, 1], delayUs: [0, 60_000] },
  ].map((about) => ({
    name: `close, ${about.point}`,
    row: 20,
    phase: 'close',
    ensemble: 'order',
    repeats: true,
    ...about,
  })),
  ...[
    { name: 'schema, between statements', statement: [1, 16] },
    { name: 'schema, at any moment', delayUs: [0, 40_000] },
    { name: 'schema of version 1', isOlder: true, stores: ['sqlite'], statement: [1, 10] },
  ].map((about) => ({ row: 21, phase: 'migration', point: 'open', nth: [1, 1], repeats: true, ...about })),
];

/** Rows of the test plan whose parts the library does not have yet. */
export const NOT_THERE = [
  '10 and 11 deliveries',
  '12 mail',
  '13 and 14 tokens',
  '15 to 17 limits',
  '18 deployments',
  '22 OAuth',
];

/** Where the kill happens that a `recovery` goes on behind. */
export const FIRST_KILLS = [
  { point: 'script:effect', nth: [4, 26] },
  { point: 'step:before', nth: [2, 6] },
  { point: 'step:after', nth: [2, 6] },
  { point: 'state:after', nth: [1, 3] },
  { point: 'end:before', nth: [1, 1] },
];
