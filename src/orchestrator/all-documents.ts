/** All documents of a kind, read in portions. */

import { inPortions } from '../engine/base/portions.ts';
import type { Clock } from '../engine/host/clock.port.ts';
import type { DocumentStore, StoredDocument } from '../engine/storage/storage.port.ts';

const PAGE = 500;

export async function allDocuments(
  documents: DocumentStore,
  kind: string,
  clock: Clock,
): Promise<readonly StoredDocument[]> {
  const all: StoredDocument[] = [];
  const portions = inPortions(clock, PAGE);
  for (let isEnd = false; !isEnd; )
    await portions.next(async (limit) => {
      const after = all.at(-1)?.name;
      const page = await documents.list(kind, { limit, now: clock.now(), ...(after !== undefined && { after }) });
      all.push(...page);
      isEnd = page.length < limit;
    });
  return all;
}
