/** Measures and prints the tables of durable execution. */

import { runChild } from '../child.mjs';
import { medianAndRange } from '../statistics.mjs';
import { chosenRows, DRAIN, DURABLE } from '../tables.mjs';
import { measureDisk } from './disk.mjs';
import { openPlace } from './place.mjs';
import { printBacklog } from './print-backlog.mjs';
import { printDrain } from './print-drain.mjs';
import { printFinished } from './print-finished.mjs';
import { printKeys } from './print-keys.mjs';
import { printLoops } from './print-loops.mjs';
import { printQueue } from './print-queue.mjs';
import { printResume } from './print-resume.mjs';
import { printThroughput } from './print-throughput.mjs';
import { printWaiting } from './print-waiting.mjs';

const AT_A_TIME = [1, 50];
const HEADS = { sqlite: 'SQLite', postgres: 'Postgres' };
const IN_POSTGRES = ['postgres', 'drain', 'queue', 'backlog', 'keys', 'finished', 'loops', 'resume'];
/** The time limit of a case beyond its measured time and its warm-up: to start, to check what it stored, and to close. */
const ALLOWANCE_MS = 120_000;

/** @param options - as for `printInMemory` */
export async function runDurable({ rounds, seconds, chosen, missing }) {
  const rows = chosenRows(DURABLE, chosen);
  const further = ['queue', 'backlog', 'keys', 'finished', 'loops', 'resume', 'waiting'].filter((name) =>
    chosen.has(name),
  );
  const backlogs = chosenRows({ DRAIN }, chosen);
  if (Object.keys({ ...rows, ...backlogs }).length === 0 && further.length === 0) return;

  const needsPostgres = [...chosen].some((name) => IN_POSTGRES.includes(name.split('-')[0]));
  const place = await openPlace(needsPostgres);
  try {
    const disk = [measureDisk(place.folder)];
    /** Runs a script of this folder, with a new database if requested. */
    const measure = async (args, { onPostgres = false, timeoutMs }) => {
      if (onPostgres && place.postgres.problem) return { unavailable: place.postgres.problem };
      const env = { BENCH_FOLDER: place.folder, ...(onPostgres && { BENCH_POSTGRES: await place.postgres.fresh() }) };
      try {
        return JSON.parse(await runChild(args, { env, timeoutMs }));
      } catch (error) {
        console.error(error.message);
        process.exitCode = 1;
        return { failed: reasonOf(error.message) };
      }
    };
    const beforeRound = () => disk.push(measureDisk(place.folder));
    const measured = await measureThroughput(rows, { rounds, seconds, missing, measure, beforeRound });
    printMachine(disk, place.postgres);
    for (const [table, head] of Object.entries(HEADS)) {
      for (const count of AT_A_TIME) {
        const alike = measured.filter((run) => run.table === table && run.count === count);
        if (alike.length > 0) printThroughput(`${head}, ${count} at a time`, alike);
      }
    }
    if (Object.keys(backlogs).length > 0) await printDrain({ rows: backlogs, rounds, missing, measure });
    if (chosen.has('queue')) await printQueue({ rounds, seconds, measure });
    if (chosen.has('backlog')) await printBacklog({ rounds, seconds, measure });
    if (chosen.has('keys')) await printKeys({ rounds, measure });
    if (chosen.has('finished')) await printFinished({ rounds, seconds, measure });
    if (chosen.has('loops')) await printLoops({ rounds, measure });
    if (chosen.has('resume')) await printResume({ rounds, measure });
    if (chosen.has('waiting')) await printWaiting({ measure });
  } finally {
    await place.close();
  }
}

function printMachine(disk, postgres) {
  const acknowledged = medianAndRange(disk, (ms) => ms.toFixed(2));
  console.log(
    `The disk acknowledged 8 kB in ${acknowledged} ms: a write and its fdatasync, measured before each round.`,
  );
  if (postgres?.problem) console.log(`Postgres is left out: ${postgres.problem}.`);
  if (postgres?.settings) {
    const { server_version, ...rest } = postgres.settings;
    const settings = Object.entries(rest).map(([name, value]) => `${name}=${value}`);
    console.log(`Postgres ${server_version}, ${settings.join(', ')}.`);
  }
  console.log('');
}

/** The error line in the output of a process that ended with an error. */
function reasonOf(message) {
  return message.match(/^\w*Error\b.*: .*$/m)?.[0] ?? message;
}

/** Rounds are interleaved over all tables, so that a busy minute of the machine affects all cases equally. */
async function measureThroughput(rows, { rounds, seconds, missing, measure, beforeRound }) {
  const cases = Object.entries(rows).flatMap(([name, { title, module, argument, peer }]) => {
    const problem = missing[peer] && `could not be installed: ${missing[peer]}`;
    const alike = { name, table: name.split('-')[0], title, module, argument, problem };
    return AT_A_TIME.map((count) => ({ ...alike, count, runs: [] }));
  });
  for (let round = 1; round <= rounds && cases.length > 0; round++) {
    beforeRound();
    for (const measured of cases) {
      const { name, table, module, argument, count, runs } = measured;
      if (measured.problem) continue;
      console.error(`round ${round} of ${rounds}: ${name}, ${count} at a time`);
      const args = ['durable/harness.mjs', module, String(seconds), String(count), ...(argument ? [argument] : [])];
      const options = { onPostgres: table === 'postgres', timeoutMs: seconds * 2000 + ALLOWANCE_MS };
      const run = await measure(args, options);
      measured.problem = run.unavailable ?? (run.failed && `failed: ${run.failed}`);
      if (!measured.problem) runs.push(run);
    }
  }
  return cases;
}
