/** Builders for the steps of the suite's ensembles. */

type Fields = Readonly<Record<string, unknown>>;

/** A step that runs a script of the suite. */
export function code(agent: string, script: string, fields: Fields = {}): Fields {
  const { config, ...rest } = fields;
  return { agent, operation: 'code', config: { script, ...(config as object | undefined) }, ...rest };
}

/** A step that returns its input. */
export function echo(agent: string, input: unknown, fields: Fields = {}): Fields {
  return code(agent, 'echo', { input, ...fields });
}

/** A step of the suite's operation `parts`. */
export function parts(agent: string, config: Fields, fields: Fields = {}): Fields {
  return { agent, operation: 'parts', config, ...fields };
}

/** A step that throws before attempt `passesAt`. */
export function flaky(agent: string, passesAt: number, retry: Fields, fields: Fields = {}): Fields {
  return code(agent, 'flaky', { config: { passesAt }, retry, ...fields });
}

/** The ensemble `e`. */
export function ensemble(flow: readonly Fields[], outputs: Fields = {}, fields: Fields = {}): Fields {
  return { name: 'e', flow, outputs, ...fields };
}
