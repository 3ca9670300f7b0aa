/** The part of a storage that keeps documents: definitions that were created at run time, and other records that change under a version check. */

import type { JsonObject } from '../base/json/json.ts';
import type { MaybePromise } from '../operation/operation.port.ts';

/** A document to be stored. */
export interface Document {
  readonly value: JsonObject;
  /** A text that a start can expect (`CommitEntry.expects`), such as a hash of what the document means. */
  readonly tag: string;
  readonly updatedAt: number;
  /** Unix ms from which on it counts as deleted. Absent: never. */
  readonly expiresAt?: number;
}

export interface StoredDocument extends Document {
  readonly name: string;
  /** Counts the changes: 1 after the first. A document that was deleted and is created again begins with 1. */
  readonly version: number;
}

export interface DocumentPage {
  /** The largest number of documents. */
  readonly limit: number;
  /** Only names after this one. */
  readonly after?: string;
  /** Unix ms. */
  readonly now: number;
}

export interface DocumentStore {
  /** A document by its kind and name. Undefined if it is unknown, deleted or expired. @param now - Unix ms */
  read(kind: string, name: string, now: number): MaybePromise<StoredDocument | undefined>;
  /**
   * Creates, replaces or deletes a document, if it has the expected version.
   * @param change - `expectedVersion` is 0 for a document that does not exist or has expired at `now`. Without a `document`, it is deleted
   * @returns false if the version is another one: then nothing changes
   */
  write(
    kind: string,
    name: string,
    change: { readonly expectedVersion: number; readonly document?: Document; readonly now: number },
  ): MaybePromise<boolean>;
  /** The documents of a kind, in the order of their names by their bytes. */
  list(kind: string, page: DocumentPage): MaybePromise<readonly StoredDocument[]>;
}
