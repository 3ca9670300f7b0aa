/** All documents of a kind, read page by page. */

import type { DocumentStore, StoredDocument } from '../engine/ports/storage.ts';

const PAGE = 500;

/** @param now - Unix ms */
export async function allDocuments(
  documents: DocumentStore,
  kind: string,
  now: number,
): Promise<readonly StoredDocument[]> {
  const all: StoredDocument[] = [];
  for (;;) {
    const after = all.at(-1)?.name;
    const page = await documents.list(kind, { limit: PAGE, now, ...(after !== undefined && { after }) });
    all.push(...page);
    if (page.length < PAGE) return all;
  }
}
