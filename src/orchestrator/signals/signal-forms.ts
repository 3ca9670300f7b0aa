/** What signals the waits of an execution take: refuses another name, and a payload that does not fit the form of the signal. */

import { OrchestratorError } from '../../engine/base/errors.ts';
import type { Json } from '../../engine/base/json/json.ts';
import { MAX_NAMED, suggestName } from '../../engine/base/suggest-name.ts';
import type { WaitStep } from '../../engine/ensemble/ensemble.ts';
import { innerLists } from '../../engine/ensemble/inner-lists.ts';
import type { Execution, ExecutionSummary } from '../../engine/execution/execution.ts';
import { describeProblems } from '../../engine/json-schema/check-by-schema.ts';
import { compileJsonSchema } from '../../engine/json-schema/compile-json-schema.ts';
import type { ValueCheck } from '../../engine/json-schema/rule.ts';
import type { SignalForm } from '../../engine/signal/signal-page.ts';
import type { DefinitionStore } from '../../engine/storage/storage.port.ts';

type ExecutionFacts = Pick<ExecutionSummary, 'ensemble' | 'version'>;
/** `any`: a `wait` has another form than a name, so the names are known only when it runs. */
type SignalsOf = ReadonlyMap<string, SignalForm | undefined> | 'any';

/** The forms of the signals that executions take, from the definitions with which they began. Each definition is read once. */
export interface SignalForms {
  /** The form of a signal; undefined if it has none, or the definition is not stored. */
  find(execution: ExecutionFacts, name: string): Promise<SignalForm | undefined>;
  /** The record with the forms of the signals that it waits for. */
  addTo(record: Execution): Promise<Execution>;
  /**
   * Checks a signal.
   *
   * @param from - where the definition is read. Default: the storage
   * @returns the payload, with the defaults of its form
   * @throws INVALID_INPUT for a name that no `wait` takes, with their names in `details.waits`, and for a payload that does not fit, with
   *   `details.issues`
   */
  check(execution: ExecutionFacts, name: string, payload: Json, from?: Pick<DefinitionStore, 'get'>): Promise<Json>;
}

export function createSignalForms(definitions: DefinitionStore): SignalForms {
  const byVersion = new Map<string, SignalsOf>();
  const checkPayload = createPayloadCheck();
  const signalsOf = async (version: string, from: Pick<DefinitionStore, 'get'> = definitions): Promise<SignalsOf> => {
    const known = byVersion.get(version);
    if (known) return known;
    const stored = await from.get(version);
    if (!stored) return 'any';
    const signals = awaitedSignals(stored.definition.flow);
    byVersion.set(version, signals);
    return signals;
  };
  const find: SignalForms['find'] = async ({ version }, name) => {
    const signals = await signalsOf(version);
    return signals === 'any' ? undefined : signals.get(name);
  };
  return {
    find,
    async addTo(record) {
      const waits = record.waitingFor.flatMap(({ kind, name }) =>
        kind === 'signal' && name !== undefined ? [name] : [],
      );
      const forms: Record<string, SignalForm> = {};
      for (const name of new Set(waits)) {
        const form = await find(record, name);
        if (form) forms[name] = form;
      }
      return Object.keys(forms).length === 0 ? record : { ...record, forms };
    },
    async check({ ensemble, version }, name, payload, from) {
      const signals = await signalsOf(version, from);
      if (signals !== 'any' && !signals.has(name)) throw unknownSignal(ensemble, name, [...signals.keys()]);
      return checkPayload(await find({ ensemble, version }, name), name, payload);
    },
  };
}

/** @returns a function that checks a payload by the form of its signal @throws INVALID_INPUT, by that function */
export function createPayloadCheck(): (form: SignalForm | undefined, name: string, payload: Json) => Json {
  const checks = new WeakMap<object, ValueCheck>();
  return (form, name, payload) => {
    const { fields } = form ?? {};
    if (!fields) return payload;
    const check = checks.get(fields) ?? compileJsonSchema(fields, 'the payload');
    checks.set(fields, check);
    const checked = check(payload ?? {});
    if ('value' in checked) return checked.value;
    const message = `the payload of signal \`${name}\` does not fit the \`fields\` of its \`wait\`: ${describeProblems(checked.problems)}`;
    throw new OrchestratorError('INVALID_INPUT', message, { details: { issues: checked.problems } });
  };
}

function unknownSignal(ensemble: string, name: string, names: readonly string[]): OrchestratorError {
  const near = suggestName(name, names);
  const waits = names.slice(0, MAX_NAMED);
  const known = `its waits take ${waits.map((one) => `\`${one}\``).join(', ')}${names.length > MAX_NAMED ? ', ...' : ''}`;
  const help = names.length === 0 ? 'it has no `wait`' : `${near ? `did you mean \`${near}\`? ` : ''}${known}`;
  return new OrchestratorError('INVALID_INPUT', `no \`wait\` of \`${ensemble}\` takes a signal \`${name}\`; ${help}`, {
    details: { waits },
  });
}

/** The signals that a flow can wait for, also inside blocks, each with its form. */
export function awaitedSignals(flow: unknown): SignalsOf {
  const signals = new Map<string, SignalForm | undefined>();
  const lists: unknown[] = [flow];
  for (let list = lists.pop(); list !== undefined; list = lists.pop()) {
    for (const step of list as readonly object[]) {
      const { wait } = step as { readonly wait?: unknown };
      if (typeof wait === 'string' && !wait.includes('${'))
        signals.set(wait, formOf(step as WaitStep) ?? signals.get(wait));
      else if (wait !== undefined) return 'any';
      for (const { steps } of innerLists(step)) lists.push(steps);
    }
  }
  return signals;
}

function formOf({ title, text, fields }: WaitStep): SignalForm | undefined {
  if (title === undefined && text === undefined && fields === undefined) return undefined;
  return { ...(title !== undefined && { title }), ...(text !== undefined && { text }), ...(fields && { fields }) };
}
