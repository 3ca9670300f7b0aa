/** Chooses the share of the crash flows that a test run covers on the slow stores. */

const THIRDS = 3;

/**
 * On memory and SQLite every flow runs each time. On Postgres and PGlite a third of the flows runs, drawn for each run.
 * `ENGINE_SUITE=all` runs every flow; `ENGINE_SUITE=0`, `1` or `2` chooses a third.
 */
export function flowShare(): { readonly part: number; readonly of: number } | undefined {
  const asked = process.env.ENGINE_SUITE;
  if (asked === 'all') return undefined;
  const part = asked === undefined ? Math.floor(Math.random() * THIRDS) : Number(asked);
  console.log(`crash flows: third ${part} (ENGINE_SUITE=${part} repeats it, ENGINE_SUITE=all runs every flow)`);
  return { part, of: THIRDS };
}
