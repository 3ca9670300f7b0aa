/** The names of the tables, with their schema. */

export interface Names {
  readonly schema: string;
  /** The workers. */
  readonly owners: string;
  readonly executions: string;
  readonly steps: string;
  readonly signals: string;
  /** The tags of executions. */
  readonly tags: string;
  /** Signals that commits send to other executions, until they are delivered. */
  readonly sentSignals: string;
  readonly definitions: string;
  readonly states: string;
  readonly tokens: string;
  readonly kv: string;
  readonly objects: string;
  readonly schedules: string;
  readonly documents: string;
  readonly deliveries: string;
  readonly charges: string;
  readonly rates: string;
  /** What executions wait for that run under limits, the limits, who takes their slots, and which queue is to be looked at. */
  readonly queues: string;
  readonly limits: string;
  readonly slots: string;
  readonly arrivals: string;
  /** Ends that are not counted yet, and counts of ends. */
  readonly ends: string;
  readonly tallies: string;
}

export function tableNames(schema: string): Names {
  const named = (table: string) => `"${schema}".${table}`;
  return {
    schema,
    owners: named('owners'),
    executions: named('executions'),
    steps: named('steps'),
    signals: named('signals'),
    tags: named('tags'),
    sentSignals: named('sent_signals'),
    definitions: named('definitions'),
    states: named('states'),
    tokens: named('tokens'),
    kv: named('kv'),
    objects: named('objects'),
    schedules: named('schedules'),
    documents: named('documents'),
    deliveries: named('deliveries'),
    charges: named('charges'),
    rates: named('rates'),
    queues: named('queues'),
    limits: named('limits'),
    slots: named('slots'),
    arrivals: named('arrivals'),
    ends: named('ends'),
    tallies: named('tallies'),
  };
}
