/**
 * Pauses of ensembles, and of everything. A document says that an ensemble is paused; each execution that is claimed while it is so is
 * paused then. A process reads the documents every two seconds, so that it may begin executions for that long.
 */

import { andThen, type MaybePromise } from '../../engine/base/maybe-promise.ts';
import type { EnginePause } from '../../engine/execution/execution-engine.port.ts';
import type { PauseScope } from '../../engine/execution/execution-store.port.ts';
import type { Clock } from '../../engine/host/clock.port.ts';
import type { StorageRetry } from '../../engine/running/storage-retry.ts';
import type { Storage, StoredDocument } from '../../engine/storage/storage.port.ts';

export interface EnginePauses {
  /** Who pauses the executions of an ensemble, as far as this process knows. */
  scopeOf(ensemble: string): PauseScope | undefined;
  /** Whether it has read the documents. Without that, it knows of no pause. */
  readonly isLoaded: boolean;
  /** Reads the documents. */
  load(): MaybePromise<void>;
  /** Reads them again, if that was some time ago. */
  refresh(): MaybePromise<void>;
  list(): Promise<readonly EnginePause[]>;
  /** @param ensemble - undefined: everything @returns how many executions were changed */
  pause(ensemble: string | undefined): Promise<number>;
  resume(ensemble: string | undefined): Promise<number>;
}

const KIND = 'pause';
/** The name of no ensemble. */
const ALL = '*';
const REFRESH_MS = 2_000;
/** How many reads come between two looks for executions that a process paused after the end of a pause. */
const READS_PER_LOOK = 30;
const PORTION = 1_000;
const PAGE = 1_000;

export function createEnginePauses(dependencies: {
  readonly storage: Pick<Storage, 'documents' | 'executions' | 'capabilities'>;
  readonly clock: Clock;
  readonly withRetry: StorageRetry;
}): EnginePauses {
  const { storage, clock, withRetry } = dependencies;
  const { documents, executions } = storage;
  let paused: ReadonlySet<string> | undefined;
  let readAt = Number.NEGATIVE_INFINITY;
  let reads = 0;

  const scopeOf = (ensemble: string): PauseScope | undefined => {
    if (!paused || paused.size === 0) return undefined;
    return paused.has(ALL) ? 'all' : paused.has(ensemble) ? 'ensemble' : undefined;
  };

  const changeAll = async (change: (limit: number) => MaybePromise<number>): Promise<number> => {
    let changed = 0;
    for (let some = PORTION; some === PORTION; changed += some) some = await withRetry(() => change(PORTION));
    return changed;
  };
  /** Whatever is paused by a pause that has ended. */
  const resumeRest = async () => {
    const names = paused ?? new Set<string>();
    const ofAll = names.has(ALL) ? 0 : await changeAll((limit) => executions.resumeAll('all', [], limit));
    const except = [...names].filter((name) => name !== ALL);
    return ofAll + (await changeAll((limit) => executions.resumeAll('ensemble', except, limit)));
  };

  const documentsAfter = async (first: readonly StoredDocument[]): Promise<readonly StoredDocument[]> => {
    const all = [...first];
    for (let page = first; page.length === PAGE; all.push(...page)) {
      const after = page.at(-1)?.name as string;
      page = await documents.list(KIND, { limit: PAGE, after, now: clock.now() });
    }
    return all;
  };
  const readDocuments = (): MaybePromise<readonly StoredDocument[]> =>
    andThen(documents.list(KIND, { limit: PAGE, now: clock.now() }), (page) =>
      page.length < PAGE ? page : documentsAfter(page),
    );
  /** @returns whether a pause has ended that this process knew */
  const know = (found: readonly StoredDocument[]): boolean => {
    const before = paused ?? new Set();
    const names = new Set(found.map(({ name }) => name));
    paused = names;
    readAt = clock.monotonic();
    reads += 1;
    return [...before].some((name) => !names.has(name));
  };
  const read = (): MaybePromise<void> =>
    andThen(readDocuments(), (found) => {
      if (know(found) || reads % READS_PER_LOOK === 0) return resumeRest().then(() => undefined);
    });

  const write = async (name: string, isPaused: boolean) => {
    for (;;) {
      const now = clock.now();
      const known = await withRetry(() => documents.read(KIND, name, now));
      if ((known !== undefined) === isPaused) return;
      const document = isPaused ? { document: { value: {}, tag: name, updatedAt: now } } : {};
      const expectedVersion = known?.version ?? 0;
      if (await withRetry(() => documents.write(KIND, name, { expectedVersion, ...document, now }))) return;
    }
  };

  return {
    scopeOf,
    get isLoaded() {
      return paused !== undefined;
    },
    load: read,
    refresh() {
      const isOld = storage.capabilities.shared && clock.monotonic() - readAt >= REFRESH_MS;
      return !paused || isOld ? read() : undefined;
    },
    async list() {
      const found = await withRetry(readDocuments);
      return found.map(({ name, updatedAt: since }) => (name === ALL ? { since } : { ensemble: name, since }));
    },
    async pause(ensemble) {
      await write(ensemble ?? ALL, true);
      await read();
      const scope = ensemble === undefined ? 'all' : 'ensemble';
      return changeAll((limit) => executions.pauseAll(scope, ensemble, limit));
    },
    async resume(ensemble) {
      await write(ensemble ?? ALL, false);
      know(await withRetry(readDocuments));
      return resumeRest();
    },
  };
}
