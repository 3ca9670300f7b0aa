/** Reads and uses the links that `signalUrl()` created, as the public `orchestrator.signalLinks`. */

import { isOrchestratorError } from '../../engine/base/errors.ts';
import { isMap } from '../../engine/base/json/is-map.ts';
import { copyJson, type Json, JsonError, type JsonObject } from '../../engine/base/json/json.ts';
import { type ExecutionSummary, isFinal } from '../../engine/execution/execution.ts';
import type { NewSignal } from '../../engine/execution/stored-execution.ts';
import type { Clock } from '../../engine/host/clock.port.ts';
import { compileJsonSchema } from '../../engine/json-schema/compile-json-schema.ts';
import { readField } from '../../engine/signal/form-field.ts';
import type { SignalForm, SignalLinkState, SignalPage, SignalPageTexts } from '../../engine/signal/signal-page.ts';
import { linkSignalId, readLink, type SignalLink } from '../../engine/signing/signal-link.ts';
import type { ExecutionService } from '../runs/execution-service.ts';
import type { SignalForms } from './signal-forms.ts';

/** The state of a link, and its content. An unknown link has only a state. */
export interface SignalLinkStatus {
  readonly state: SignalLinkState;
  readonly executionId?: string;
  /** The signal's name. */
  readonly name?: string;
  /** JSON. */
  readonly payload?: unknown;
  /** What its page shows and asks. */
  readonly page?: SignalPage;
  /** Of the state `invalid`: what is wrong with each field. */
  readonly issues?: readonly { readonly path: string; readonly message: string }[];
}

/** The links that `signalUrl()` creates, for your own pages in place of the built-in ones. */
export interface SignalLinks {
  /** Reads the state of a link, and changes nothing. @param token - the part after `/signals/` in the link */
  read(token: string): Promise<SignalLinkStatus>;
  /**
   * Sends the signal if the link is open. A second call changes nothing.
   * @param token - as for `read`
   * @param values - of the fields of its page, as a form sends them: text by the name of the field. They are added to the payload
   */
  use(token: string, values?: Readonly<Record<string, string>>): Promise<SignalLinkStatus>;
  /** The option `texts`. */
  readonly texts: SignalPageTexts;
}

export interface SignalLinksDependencies {
  readonly secrets: readonly string[];
  readonly texts: SignalPageTexts | undefined;
  readonly clock: Clock;
  readonly executionService: ExecutionService;
  readonly forms: SignalForms;
}

export function createSignalLinks({
  secrets,
  texts = {},
  clock,
  executionService,
  forms,
}: SignalLinksDependencies): SignalLinks {
  const { records, engine } = executionService;
  const stateOf = async (link: SignalLink, known: ExecutionSummary | undefined): Promise<SignalLinkState> => {
    const { executionId, name, madeAt, place } = link;
    // Only executions create links: an unknown execution has ended and was deleted.
    if (!known) return 'over';
    if (await records.signals.find(executionId, linkSignalId(link))) return 'answered';
    if (isFinal(known.status)) return 'over';
    const waits = await records.executions.listEndedWaits(executionId, name, madeAt);
    return waits.some(({ key }) => !areConcurrent(place, key)) ? 'over' : 'open';
  };

  const send = async (link: SignalLink, payload: Json): Promise<SignalLinkState> => {
    const { executionId, name } = link;
    const signal: NewSignal = { id: linkSignalId(link), executionId, name, payload, createdAt: clock.now() };
    if ((await engine.signal(signal)) !== 'stored') return 'over';
    // Two links of one step may be used at the same moment: the first stored signal counts.
    const stored = await records.signals.find(executionId, signal.id);
    return stored && JSON.stringify(stored.payload) !== JSON.stringify(payload) ? 'answered' : 'given';
  };

  /** The payload with what was put in. The fields of the link are checked, or else the form of the signal. */
  const fill = async (
    { payload, page: own, name }: SignalLink,
    page: SignalPage | undefined,
    values: Readonly<Record<string, string>>,
    execution: ExecutionSummary,
  ): Promise<Filled> => {
    const read = readFields(page?.fields, values);
    if ('issues' in read) return read;
    const join = (more: Json): Json =>
      isMap(payload ?? {}) ? { ...(payload as JsonObject | null), ...(more as JsonObject) } : payload;
    if (own?.fields) {
      const checked = compileJsonSchema(own.fields, 'the form')(read.payload);
      return 'problems' in checked ? { issues: checked.problems } : { payload: join(checked.value) };
    }
    try {
      return { payload: await forms.check(execution, name, page?.fields ? join(read.payload) : payload) };
    } catch (thrown) {
      if (!isOrchestratorError(thrown, 'INVALID_INPUT') || !thrown.details.issues) throw thrown;
      return { issues: thrown.details.issues };
    }
  };

  const answer = async (token: string, values?: Readonly<Record<string, string>>): Promise<SignalLinkStatus> => {
    const link = typeof token === 'string' ? readLink(token, secrets) : undefined;
    if (!link) return { state: 'unknown' };
    const { executionId, name, payload } = link;
    const execution = await records.executions.getStatus(executionId);
    const page = pageOf(link, execution && (await forms.find(execution, name)));
    const status = { executionId, name, payload, ...(page && { page }) };
    const state = await stateOf(link, execution);
    if (!values || state !== 'open' || !execution) return { state, ...status };
    const filled = await fill(link, page, values, execution);
    if ('issues' in filled) return { state: 'invalid', ...status, issues: filled.issues };
    return { ...status, state: await send(link, filled.payload), payload: filled.payload };
  };

  return {
    read: (token) => answer(token),
    use: (token, values = {}) => answer(token, values),
    texts,
  };
}

/** What the page of a link shows: the form of the signal without the fields that the payload has, and what the link says itself. */
function pageOf({ payload, page }: SignalLink, form: SignalForm | undefined): SignalPage | undefined {
  if (!form) return page;
  const { fields, ...texts } = form;
  const asked = page?.fields ?? (fields && withoutKeys(fields, payload));
  return { ...texts, ...page, ...(asked && { fields: asked }) };
}

function withoutKeys(fields: JsonObject, payload: Json): JsonObject | undefined {
  if (!isMap(payload)) return fields;
  const isAsked = (name: string) => !Object.hasOwn(payload, name);
  const properties = Object.entries(fields.properties as JsonObject).filter(([name]) => isAsked(name));
  if (properties.length === 0) return undefined;
  const required = ((fields.required ?? []) as readonly string[]).filter(isAsked);
  return { ...fields, properties: Object.fromEntries(properties), required };
}

type Filled = { readonly payload: Json } | { readonly issues: NonNullable<SignalLinkStatus['issues']> };

/** What a form sent, with each value as its field reads it. Values of other names don't count. */
function readFields(fields: JsonObject | undefined, form: Readonly<Record<string, string>>): Filled {
  const properties = Object.entries((fields?.properties ?? {}) as Readonly<Record<string, JsonObject>>);
  const given = properties.flatMap(([name, field]) => {
    const value = readField(field, Object.hasOwn(form, name) ? form[name] : undefined);
    return value === undefined ? [] : [[name, value] as const];
  });
  try {
    return { payload: copyJson(Object.fromEntries(given)) };
  } catch (thrown) {
    if (!(thrown instanceof JsonError)) throw thrown;
    return { issues: [thrown.problem] };
  }
}

const BRANCH = /^(foreach|parallel)\[\d+\]$/;

/**
 * Whether two steps are in different items of one `foreach`, or in different branches of one `parallel`. Then the wait of one has
 * nothing to do with a link of the other.
 */
function areConcurrent(a: string, b: string): boolean {
  const [ofA, ofB] = [a.split('.'), b.split('.')];
  const at = ofA.findIndex((segment, i) => segment !== ofB[i]);
  return BRANCH.test(ofA[at] ?? '') && BRANCH.test(ofB[at] ?? '');
}
