/** The names under which one storage finds its tables. */

export interface Names {
  readonly schema: string;
  readonly owners: string;
  readonly executions: string;
  readonly steps: string;
  readonly deliveries: string;
  readonly signals: string;
  /** Signals that entries brought along, until they are given to their executions. */
  readonly sentSignals: string;
  readonly definitions: string;
  readonly states: string;
  readonly tokens: string;
  readonly kv: string;
  readonly objects: string;
  readonly schedules: string;
}

export function tableNames(schema: string): Names {
  const named = (table: string) => `"${schema}".${table}`;
  return {
    schema,
    owners: named('owners'),
    executions: named('executions'),
    steps: named('steps'),
    deliveries: named('deliveries'),
    signals: named('signals'),
    sentSignals: named('sent_signals'),
    definitions: named('definitions'),
    states: named('states'),
    tokens: named('tokens'),
    kv: named('kv'),
    objects: named('objects'),
    schedules: named('schedules'),
  };
}
