/** Reads the fields of a component: what callers pass, and what a file of a repository has. */

import * as z from 'zod/mini';
import { OrchestratorError } from '../base/errors.ts';
import { formatPath } from '../base/json/json.ts';
import { once } from '../base/once.ts';
import { refuseUnknownKeys } from '../base/read-options.ts';
import { oneOf } from '../base/wording.ts';
import {
  COMPONENT_KINDS,
  type ComponentKind,
  type ComponentMetadata,
  componentNameProblem,
  METADATA_KEYS,
  versionProblem,
} from './component.ts';

const MAX_TEXT = 10_000;
const MAX_FILE = 1_000;

const text = (max = MAX_TEXT) => z.string().check(z.minLength(1), z.maxLength(max));
const texts = () => z.array(text(200)).check(z.maxLength(1_000));

const variable = () =>
  z.union([text(200), z.strictObject({ name: text(200), default: z.optional(z.unknown()) })], {
    error: 'must be a name, or `{ name, default }`',
  });

const METADATA = once(() =>
  z.strictObject({
    description: z.optional(text()),
    provider: z.optional(text(200)),
    model: z.optional(text(200)),
    temperature: z.optional(z.number().check(z.gte(0), z.lte(2))),
    maxTokens: z.optional(z.int().check(z.gte(1))),
    variables: z.optional(z.array(variable()).check(z.maxLength(1_000))),
    usedBy: z.optional(texts()),
    tags: z.optional(texts()),
    owner: z.optional(text(200)),
  }),
);

export function refuseComponent(message: string): never {
  throw new OrchestratorError('INVALID_REQUEST', message);
}

/** @throws INVALID_REQUEST */
export function readName(name: unknown): string {
  const problem = componentNameProblem(name);
  return problem === undefined ? (name as string) : refuseComponent(`the name of a component ${problem}`);
}

/** @throws INVALID_REQUEST */
export function readVersion(version: unknown): string {
  const problem = versionProblem(version);
  return problem === undefined ? (version as string) : refuseComponent(`\`version\` ${problem}`);
}

/** @throws INVALID_REQUEST */
export function readKind(kind: unknown): ComponentKind {
  const known = COMPONENT_KINDS.find((one) => one === kind);
  return known ?? refuseComponent(`\`kind\` must be ${oneOf(COMPONENT_KINDS)}`);
}

/** Who did something, or why. @throws INVALID_REQUEST */
export function readNote(key: string, value: unknown, max = MAX_TEXT): string | undefined {
  if (value === undefined) return undefined;
  if (typeof value === 'string' && value !== '' && value.length <= max) return value;
  return refuseComponent(`\`${key}\` must be text of at most ${max} characters`);
}

/** The folder of git, in every form in which a file system may find it. */
const OF_GIT = /^(?:\.git|\.?git~\d)[. ]*$/iu;

/** A path inside a project, with `/`. @throws INVALID_REQUEST */
export function readFilePath(file: unknown): string | undefined {
  if (file === undefined) return undefined;
  const isInside =
    typeof file === 'string' &&
    file.length <= MAX_FILE &&
    // No drive, no backslash, no control character.
    /^[^\\:\p{Cc}]+$/u.test(file) &&
    file.split('/').every((part) => part !== '' && part !== '.' && part !== '..' && !OF_GIT.test(part));
  return isInside
    ? file
    : refuseComponent('`file` must be a path inside the project, such as `prompts/greet.md`, and not inside of `.git`');
}

/** @throws INVALID_REQUEST */
export function readMetadata(metadata: unknown): ComponentMetadata {
  if (metadata === undefined) return {};
  if (typeof metadata !== 'object' || metadata === null || Array.isArray(metadata))
    return refuseComponent('`metadata` must be an object');
  try {
    refuseUnknownKeys(metadata, METADATA_KEYS, 'metadata');
  } catch (error) {
    return refuseComponent((error as Error).message);
  }
  const read = z.safeParse(METADATA(), metadata);
  if (read.success) return read.data as ComponentMetadata;
  const [issue] = read.error.issues;
  return refuseComponent(`\`metadata.${formatPath((issue?.path ?? []) as (string | number)[])}\`: ${issue?.message}`);
}
