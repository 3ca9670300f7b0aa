/** What identifies a start that a caller may repeat: its own id, its idempotency key, and the tags by which people find it. */

import { EXECUTION_ID, isGeneratedId } from './id.ts';
import type { NewExecution } from './stored-execution.ts';

/** What a caller may say of an execution that it starts. Nothing of it is stored without a start. */
export interface StartIdentity {
  /**
   * The id of the execution: 1 to 128 of the characters `A-Z a-z 0-9 _ . : -`, not beginning with `exec_`. A second start with the
   * same id finds the first execution.
   */
  readonly id?: string | undefined;
  /** 1 to 255 characters. A second start with the same key finds the first execution, as long as that is kept. */
  readonly idempotencyKey?: string | undefined;
  /** Whose key it is, such as the id of a user: equal keys of two scopes are different keys. 1 to 255 characters. Default: no scope. */
  readonly idempotencyScope?: string | undefined;
  /** Up to 16 texts of 1 to 128 characters, by which the execution can be listed. A repeated tag counts once. */
  readonly tags?: readonly string[] | undefined;
}

export const MAX_KEY_LENGTH = 255;
/** The longest tag, and the longest text of a search. */
export const MAX_TAG_LENGTH = 128;
export const MAX_TAGS = 16;

/** Control characters and halves of surrogate pairs: a tag is text for people, and the beginning of a tag can be searched. */
const UNSEEN = /[\p{Cc}\p{Surrogate}\ufeff]/u;

/** Whether a text can be a tag, or the beginning of one. */
export function isTag(tag: unknown): tag is string {
  return typeof tag === 'string' && tag !== '' && tag.length <= MAX_TAG_LENGTH && !UNSEEN.test(tag);
}

/** Whether a caller may give an execution this id. */
export function isOwnId(id: unknown): id is string {
  return typeof id === 'string' && EXECUTION_ID.test(id) && !isGeneratedId(id);
}

/** Whether a text can be an idempotency key. */
export function isIdempotencyKey(key: unknown): key is string {
  return typeof key === 'string' && key !== '' && key.length <= MAX_KEY_LENGTH;
}

/** What is wrong with a part of a start, by the part; in the words of an error message. */
export const START_RULES = {
  id: '`id` must be 1 to 128 of the characters A-Z a-z 0-9 _ . : - and must not begin with `exec_`, which only generated ids do',
  idempotencyKey: `\`idempotencyKey\` must be text of 1 to ${MAX_KEY_LENGTH} characters`,
  tags: `\`tags\` must be a list of up to ${MAX_TAGS} texts of 1 to ${MAX_TAG_LENGTH} characters, without control characters`,
} as const;

/** Whether a list can be the tags of an execution. */
export function areTags(tags: unknown): tags is readonly string[] {
  return Array.isArray(tags) && tags.length <= MAX_TAGS && tags.every(isTag);
}

/** The tags without repeated ones. @returns undefined for no tags */
export function toTags(tags: readonly string[] | undefined): readonly string[] | undefined {
  return tags === undefined || tags.length === 0 ? undefined : [...new Set(tags)];
}

/** The key as it is stored: equal only if both the key and its scope are. @returns undefined without a key */
export function toStoredKey({ idempotencyKey: key, idempotencyScope: scope = '' }: StartIdentity): string | undefined {
  return key === undefined ? undefined : `${scope.length}:${scope}${key}`;
}

/** The key of the execution that retries another one, so that it is retried once. No caller can give it: `toStoredKey` begins with a digit. */
export function retryKeyOf(executionId: string): string {
  return `retry:${executionId}`;
}

/** Whether the caller of a start can repeat it: then the same execution is found again. */
export function isRepeatable({ id, idempotencyKey }: Pick<NewExecution, 'id' | 'idempotencyKey'>): boolean {
  return idempotencyKey !== undefined || !isGeneratedId(id);
}
