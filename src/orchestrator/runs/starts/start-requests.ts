/** Makes executions of the documents with which SQL asks for them: see the function `start` in the schema of the Postgres storage. */

import { hashText } from '../../../engine/base/bytes/hash.ts';
import { isOrchestratorError } from '../../../engine/base/errors.ts';
import type { Json, JsonObject } from '../../../engine/base/json/json.ts';
import type { AttachedEngine, LoadedDefinition } from '../../../engine/execution/execution-engine.port.ts';
import type { IdSource } from '../../../engine/execution/id.ts';
import { toStoredKey } from '../../../engine/execution/start-once.ts';
import type { ExpectedDocument, NewExecution } from '../../../engine/execution/stored-execution.ts';
import type { Clock } from '../../../engine/host/clock.port.ts';
import type { Logger } from '../../../engine/host/logger.port.ts';
import type { MaybePromise } from '../../../engine/operation/operation.port.ts';
import type { DocumentStore, RecordReader, StoredDocument } from '../../../engine/storage/storage.port.ts';
import type { LoadedEnsemble } from '../../definitions/load-definitions.ts';
import type { TimedTask, TimedWork } from '../../timed/timed-work.ts';
import { newExecution } from './new-execution.ts';
import { readInput } from './read-input.ts';
import { withCurrentDefinition } from './with-current-definition.ts';

export interface StartRequestDependencies {
  readonly documents: DocumentStore;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly ids: IdSource;
  readonly engine: () => Pick<AttachedEngine, 'begin'>;
  readonly records: () => RecordReader;
  toLoadedDefinition(ensemble: LoadedEnsemble): LoadedDefinition;
  find(name: string): MaybePromise<LoadedEnsemble>;
  forget(document: ExpectedDocument): void;
}

interface StartRequest {
  readonly id: string;
  readonly ensemble: string;
  readonly input: Json;
  readonly key: string | null;
}

const KIND = 'start';
const PAGE = 100;
const AGAIN_MS = 1_000;
/** How long a process that does not know the ensemble leaves the request to others, which may have a newer program. */
const UNKNOWN_MS = 60_000;
const LATER: ReadonlySet<string> = new Set(['NOT_CONFIGURED']);
const UNKNOWN: ReadonlySet<string> = new Set(['NOT_FOUND', 'NOT_ACTIVE']);

export interface StartRequests {
  readonly task: TimedTask;
  attach(work: Pick<TimedWork, 'wake'>): void;
  /** There may be requests. */
  requested(): void;
}

export function createStartRequests(dependencies: StartRequestDependencies): StartRequests {
  const { documents, clock, logger, ids, engine, records, toLoadedDefinition, find, forget } = dependencies;

  /** The execution of a request, if an earlier look at it made one. */
  const findMade = async ({ id, key }: StartRequest) => {
    const made = await records().executions.getStatus(id);
    if (made || key === null) return made;
    const other = await records().executions.findByKey(toStoredKey({ idempotencyKey: key }) as string);
    return other === undefined ? undefined : records().executions.getStatus(other);
  };

  const begin = async (request: StartRequest, current: LoadedEnsemble): Promise<void> => {
    const { id, key } = request;
    const ensemble = current.traffic?.choose(request.input, key ?? id) ?? current;
    const input = await readInput(ensemble, request.input);
    const execution = newExecution(ensemble.compiled, beginningOf(request, input));
    await engine().begin(execution, toLoadedDefinition(ensemble), {
      mayQueue: true,
      expects: ensemble.expects,
    });
  };
  const beginningOf = ({ id, key }: StartRequest, input: Json) => ({
    ...{ id, input, seed: ids.seed(), createdAt: clock.now(), trigger: { type: 'call' } as const },
    idempotencyKey: toStoredKey(key === null ? {} : { idempotencyKey: key }),
  });

  /** What can't be started has a record all the same: its caller knows the id. */
  const fail = async (request: StartRequest, thrown: unknown): Promise<void> => {
    const { code = 'INTERNAL', message = String(thrown) } = thrown as { code?: string; message?: string };
    const { definition, run } = refusal(request.ensemble, { code, message });
    const execution: NewExecution = {
      ...beginningOf(request, request.input),
      ensemble: request.ensemble,
      version: definition.version,
    };
    await engine().begin(execution, { definition, durability: 'step', run }, { mayQueue: false });
  };

  /** @returns whether the request is done */
  const answer = async (request: StartRequest, since: number): Promise<boolean> => {
    if (await findMade(request)) return true;
    try {
      await withCurrentDefinition(
        () => find(request.ensemble),
        forget,
        (current) => begin(request, current),
      );
    } catch (thrown) {
      const { code = '' } = isOrchestratorError(thrown) ? thrown : {};
      // Another process was faster.
      if (code === 'CONFLICT' && (await findMade(request))) return true;
      if (!isOrchestratorError(thrown) || thrown.retryable || LATER.has(code)) {
        logger.warn(
          { err: thrown, executionId: request.id, ensemble: request.ensemble },
          'a start from SQL is tried again',
        );
        return false;
      }
      if (UNKNOWN.has(code) && clock.now() < since + UNKNOWN_MS) return false;
      await fail(request, thrown);
    }
    return true;
  };

  const read = async (after: string, now: number) =>
    documents.list(KIND, { limit: PAGE, now, ...(after !== '' && { after }) });
  let work: Pick<TimedWork, 'wake'> | undefined;
  let isRequested = false;
  const task: TimedTask = {
    async advance({ shouldContinue }) {
      if (!isRequested) return { nextAt: undefined };
      isRequested = false;
      const now = clock.now();
      let isLeft = false;
      let after = '';
      for (let page = await read(after, now); page.length > 0 && shouldContinue(); page = await read(after, now))
        for (const document of page) {
          after = document.name;
          if (!shouldContinue()) break;
          const { name, version: expectedVersion, updatedAt } = document;
          if (await answer(requestOf(document), updatedAt)) await documents.write(KIND, name, { expectedVersion, now });
          else isLeft = true;
        }
      isRequested ||= isLeft;
      return { nextAt: isRequested ? now + (isLeft ? AGAIN_MS : 0) : undefined };
    },
    logFailure(err, againInMs) {
      isRequested = true;
      logger.warn({ err, againInMs }, 'starts from SQL could not be read');
    },
  };
  return {
    task,
    attach(given) {
      work = given;
    },
    requested() {
      isRequested = true;
      work?.wake(task, clock.now());
    },
  };
}

function requestOf({ value }: StoredDocument): StartRequest {
  const { id, ensemble, input, key } = value as unknown as StartRequest;
  return { id, ensemble, input, key };
}

/** A run that fails at once. The definition fails, too, in a process that takes it over. */
function refusal(name: string, error: { readonly code: string; readonly message: string }) {
  const why = JSON.stringify(error.message).replaceAll('${', '$ {');
  const flow = [{ sleep: `\${required(input.refused, ${why})}` }];
  const definition = { name, flow } as unknown as JsonObject;
  const outcome = Promise.resolve({ status: 'failed', output: null, error } as const);
  const run: LoadedDefinition['run'] = () => ({ outcome, stop() {}, abandon() {} });
  return { definition: { version: hashText(JSON.stringify(definition)), definition, needs: [] }, run };
}
