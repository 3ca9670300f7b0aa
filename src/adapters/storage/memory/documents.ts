/** The documents of the memory storage. */

import type { DocumentStore, StoredDocument } from '../../../engine/storage/document-store.port.ts';
import { compareBytes } from '../compare-bytes.ts';

/** How many documents one write looks at, to delete those that have expired. */
const SWEPT_PER_WRITE = 20;

/** Documents in memory. */
export function memoryDocuments(): DocumentStore {
  const kinds = new Map<string, Map<string, StoredDocument>>();
  const isLive = ({ expiresAt }: StoredDocument, now: number) => expiresAt === undefined || expiresAt > now;
  const read: DocumentStore['read'] = (kind, name, now) => {
    const found = kinds.get(kind)?.get(name);
    return found && isLive(found, now) ? found : undefined;
  };

  const sweep = (documents: Map<string, StoredDocument>, now: number) => {
    let left = SWEPT_PER_WRITE;
    for (const [name, document] of documents) {
      if (left === 0) return;
      if (!isLive(document, now)) documents.delete(name);
      left -= 1;
    }
  };

  return {
    read,
    write(kind, name, { expectedVersion, document, now }) {
      const known = read(kind, name, now) as StoredDocument | undefined;
      if ((known?.version ?? 0) !== expectedVersion) return false;
      const documents = kinds.get(kind) ?? new Map<string, StoredDocument>();
      kinds.set(kind, documents);
      sweep(documents, now);
      if (document) documents.set(name, { ...document, name, version: expectedVersion + 1 });
      else documents.delete(name);
      return true;
    },
    list(kind, { limit, after, now }) {
      const encoder = new TextEncoder();
      const start = after === undefined ? undefined : encoder.encode(after);
      return [...(kinds.get(kind)?.values() ?? [])]
        .filter((document) => isLive(document, now))
        .map((document) => ({ document, key: encoder.encode(document.name) }))
        .filter(({ key }) => start === undefined || compareBytes(key, start) > 0)
        .sort((a, b) => compareBytes(a.key, b.key))
        .slice(0, limit)
        .map(({ document }) => document);
    },
  };
}
