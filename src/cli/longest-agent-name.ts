/** The columns that the names of a definition's agents take. */

/** @param definition - in its current form: steps are maps with `agent` and perhaps `name` */
export function longestAgentName(definition: unknown): number {
  if (typeof definition !== 'object' || definition === null) return 0;
  const { agent, name } = definition as { readonly agent?: unknown; readonly name?: unknown };
  const own = typeof agent === 'string' ? (typeof name === 'string' ? name : agent).length : 0;
  return Object.values(definition).reduce<number>((longest, value) => Math.max(longest, longestAgentName(value)), own);
}
