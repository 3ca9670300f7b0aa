/** Reads the parts of a definition that have their own forms: agents, triggers, notifications and inputs. */

import { suggestName } from '../../base/suggest-name.ts';
import { describeValue, oneOf } from '../../base/wording.ts';
import type { AgentDefinition, NotificationDefinition, TriggerDefinition } from '../../ensemble/ensemble.ts';
import type { ConcurrencyRule, RateRule } from '../../ensemble/flow-control.ts';
import { canonicalWebhookPath } from '../../webhook/webhook-path.ts';
import { checkShape, type StandIns } from '../forms/check-shape.ts';
import { agentSchema, inputFieldsSchema, isJsonSchema } from '../forms/forms.ts';
import {
  emailNotificationSchema,
  scheduleTriggerSchema,
  webhookNotificationSchema,
  webhookTriggerSchema,
} from '../forms/trigger-forms.ts';
import type { Path } from '../source/problem.ts';
import { type Fields, type Place, pathKey, type Reader, readBehaviour } from './read-older-form.ts';
import { addNames, type PartReader } from './read-steps.ts';

/** The maximum number of agents that one definition may declare. */
export const MAX_AGENTS = 1000;
const MAX_TRIGGERS = 100;
const MAX_NOTIFICATIONS = 100;
const MAX_LIMITS = 10;

/** Reads one agent definition, a shared agent or an entry of `agents`. @returns undefined when it can't be used */
export function readAgent(entry: unknown, place: Place, reader: Reader): AgentDefinition | undefined {
  const fields = checkShape(agentSchema(), entry, place.source, reader);
  if (!fields) return undefined;
  const agent: Fields = { ...fields };
  readBehaviour(agent, place, reader);
  return agent as unknown as AgentDefinition;
}

interface ReadAgents {
  readonly read: AgentDefinition[];
  /** The name of an agent could not be read, so any unknown name may be that agent. */
  readonly unnamed: boolean;
}

/** Reads `agents`. An agent that can't be used is reported and left out. */
export function readAgents(entries: unknown, place: Place, reader: PartReader): ReadAgents | undefined {
  let unnamed = false;
  const read = readList(entries, place, MAX_AGENTS, reader, (entry, at) => {
    const agent = readAgent(entry, at, reader);
    if (agent) return agent;
    const known = reader.brokenNames.size;
    addNames(entry, reader.brokenNames);
    if (reader.brokenNames.size === known) unnamed = true;
    return undefined;
  });
  return read && { read, unnamed };
}

const TRIGGER_TYPES = ['webhook', 'schedule'] as const;
type TriggerType = (typeof TRIGGER_TYPES)[number];

/** Reads `trigger`. */
export function readTriggers(entries: unknown, place: Place, reader: PartReader): TriggerDefinition[] | undefined {
  return readList(entries, place, MAX_TRIGGERS, reader, (entry, { source }) => {
    const known = typeOf(entry, source, TRIGGER_TYPES, reader);
    const type = known ?? meantTrigger(entry as Readonly<Record<string, unknown>>);
    if (type === undefined) return undefined;
    const given = known ? entry : { ...(entry as object), type };
    if (type === 'schedule') {
      const standIns: StandIns = { type, cron: '@daily' };
      return checkShape(scheduleTriggerSchema(), given, source, reader, standIns) as TriggerDefinition | undefined;
    }
    const standIns: StandIns = { type, path: '/' };
    const trigger = checkShape(webhookTriggerSchema(), given, source, reader, standIns);
    if (!trigger) return undefined;
    const path = canonicalWebhookPath(trigger.path);
    if (path === undefined) {
      const message = 'must be a plain path: no empty, `.` or `..` parts, no `\\`, no broken or hidden escapes';
      reader.report({ path: [...source, 'path'], message });
      reader.dropped.add([...source, 'path']);
    }
    return { ...trigger, path: path ?? '/' } as TriggerDefinition;
  });
}

/** The form of a trigger without a type, or with a misspelled one. Of any other type, nothing more can be said. */
function meantTrigger(entry: Readonly<Record<string, unknown>>): TriggerType | undefined {
  const { type } = entry;
  if (type === undefined) return Object.hasOwn(entry, 'cron') ? 'schedule' : 'webhook';
  return typeof type === 'string' ? (suggestName(type, TRIGGER_TYPES) as TriggerType | undefined) : undefined;
}

/** Reads `concurrency` or `rate`: one rule, which may be written without a list, or several. */
export function readRules<Rule extends ConcurrencyRule | RateRule>(
  given: unknown,
  schema: Parameters<typeof checkShape>[0],
  place: Place,
  reader: PartReader,
): Rule[] | undefined {
  const read = (entry: unknown, source: Path) =>
    checkShape(schema, entry, source, reader, { limit: 1 }) as Rule | undefined;
  if (given === undefined || Array.isArray(given))
    return readList(given, place, MAX_LIMITS, reader, (entry, { source }) => read(entry, source));
  reader.spellings.set(pathKey([...place.path, 0]), place.source);
  const rule = read(given, place.source);
  return rule && [rule];
}

/** Reads `notifications`. */
export function readNotifications(
  entries: unknown,
  place: Place,
  reader: PartReader,
): NotificationDefinition[] | undefined {
  return readList(entries, place, MAX_NOTIFICATIONS, reader, (entry, { source }) => {
    const type = typeOf(entry, source, ['webhook', 'email'], reader);
    if (type === undefined) return undefined;
    const schema = type === 'email' ? emailNotificationSchema() : webhookNotificationSchema();
    return checkShape(schema, entry, source, reader) as NotificationDefinition | undefined;
  });
}

/** Which of several forms an entry has. @returns the first form for an entry that is not a map; undefined for an unknown type */
function typeOf<T extends string>(
  entry: unknown,
  path: Path,
  types: readonly [T, ...(readonly T[])],
  reader: PartReader,
): T | undefined {
  if (typeof entry !== 'object' || entry === null || Array.isArray(entry)) return types[0];
  const { type } = entry as { readonly type?: unknown };
  const known = types.find((one) => one === type);
  if (known !== undefined) return known;
  const names = oneOf(types);
  const suggestion = typeof type === 'string' ? suggestName(type, types) : undefined;
  const message =
    type === undefined ? `\`type\` is required: ${names}` : `must be ${names}, not ${describeValue(type)}`;
  reader.report({ path: [...path, 'type'], message, suggestion });
  return undefined;
}

// An entry that is left out moves the later entries forward, so their places in the source are stored.
function readList<T>(
  entries: unknown,
  place: Place,
  max: number,
  reader: PartReader,
  read: (entry: unknown, at: Place) => T | undefined,
): T[] | undefined {
  if (!Array.isArray(entries)) return undefined;
  if (entries.length > max) {
    reader.report({ path: place.source, message: `has ${entries.length} entries; at most ${max} are allowed` });
    reader.dropped.add(place.source);
    return [];
  }
  const out: T[] = [];
  entries.forEach((entry, i) => {
    const at = { path: [...place.path, out.length], source: [...place.source, i] };
    if (out.length !== i) reader.spellings.set(pathKey(at.path), at.source);
    const part = read(entry, at);
    if (part !== undefined) out.push(part);
    else reader.spellings.delete(pathKey(at.path));
  });
  return out;
}

const NOT_FOR_INPUTS: ReadonlySet<string> = new Set(['input', 'env', 'headers']);

/** Reads `inputs`: declared fields, or a JSON Schema as it is. A wrong field still counts as declared. */
export function readInputs(inputs: unknown, path: Path, reader: PartReader): unknown {
  if (inputs === undefined || isJsonSchema(inputs)) return inputs;
  const keys = Object.keys(inputs as object);
  if (keys.some((key) => key.startsWith('$')) || isSchemaWithoutType(inputs as Fields)) {
    reader.report({ path, message: 'looks like a JSON Schema, which needs `type: object` next to its other keys' });
    return undefined;
  }
  const read = { ...checkShape(inputFieldsSchema(), inputs, path, reader) };
  for (const key of keys) {
    if (!Object.hasOwn(read, key)) read[key] = {};
    if (!NOT_FOR_INPUTS.has(key)) continue;
    const message = `\`${key}\` is a reserved name: it means something else in every expression; choose another`;
    reader.report({ path: [...path, key], key: true, message });
  }
  return read;
}

function isSchemaWithoutType({ properties, type }: Fields): boolean {
  if (type !== undefined || typeof properties !== 'object' || properties === null) return false;
  const inside = Object.values(properties);
  return inside.length > 0 && inside.every((value) => typeof value === 'object' && value !== null);
}
