/** The versions of a definition that a store keeps: the newest 100 of each name. Pure. */

import { OrchestratorError } from '../base/errors.ts';
import { listOfNames, quoted } from '../base/wording.ts';

/** One version of a definition: what was stored, when, by whom, and why. */
export interface DefinitionVersion {
  /** The hash of the definition, together with the shared agents that it used: the `version` of the executions that run it. */
  readonly version: string;
  /** Its name for people, such as `v2`. No other version of the definition has it. */
  readonly label?: string;
  /** Unix ms. */
  readonly createdAt: number;
  /** Who stored it. */
  readonly by?: string;
  /** Why. */
  readonly message?: string;
  /** The commit that has its file. */
  readonly commit?: string;
}

/** A version with its definition. */
export interface VersionedDefinition<Definition> extends DefinitionVersion {
  readonly definition: Definition;
  /** The text that was stored, with its comments. Absent if an object was stored. */
  readonly text?: string;
}

/** How many versions of a name are kept. */
export const MAX_VERSIONS = 100;

/** The newest version. */
export const LATEST_VERSION = 'latest';

const LABEL = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
const HASH = /^[0-9a-f]{32}$/;

/** @returns why a value can't be the label of a version */
export function labelProblem(label: unknown): string | undefined {
  if (typeof label !== 'string' || !LABEL.test(label))
    return 'must be a label such as `v2`: a letter or a digit, then up to 63 letters, digits, `.`, `_` or `-`';
  if (label === LATEST_VERSION) return 'must not be `latest`, which is the newest version';
  if (HASH.test(label)) return 'must not look like the hash of a version';
  return /^exec[_-]/.test(label) ? 'must not look like the id of an execution' : undefined;
}

/** Whether it has the form of a version's hash. */
export function isHash(ref: string): boolean {
  return HASH.test(ref);
}

/** @param versions - the newest first @param ref - `latest`, a label or a hash */
export function findVersion(versions: readonly DefinitionVersion[], ref: string): DefinitionVersion | undefined {
  if (ref === LATEST_VERSION) return versions[0];
  return versions.find(({ version, label }) => label === ref || version === ref);
}

/** A version as it is stored. */
export interface StoredVersion extends DefinitionVersion {
  /** The hash of its text. Absent: it was stored as an object. */
  readonly textHash?: string | undefined;
}

/**
 * Adds a version. One that is the newest already, with the same text and no other label, changes nothing.
 *
 * @param versions - the newest first
 * @param kept - versions that are kept, however old they are
 * @throws CONFLICT for a label that another version has
 */
export function addVersion(
  versions: readonly StoredVersion[],
  added: StoredVersion,
  kept: ReadonlySet<string>,
): readonly StoredVersion[] {
  const [newest] = versions;
  const { version, label } = added;
  const isSame = newest?.version === version && newest.textHash === added.textHash;
  if (isSame && (label === undefined || label === newest.label)) return versions;
  const other = label === undefined ? undefined : versions.find((one) => one.label === label);
  if (other && other.version !== version)
    throw new OrchestratorError(
      'CONFLICT',
      `label ${quoted(label as string)} is that of version ${other.version}; choose another one`,
      {
        details: { version: other.version },
      },
    );
  return [added, ...versions].filter((one, i) => i < MAX_VERSIONS || kept.has(one.version));
}

/** @param what - such as `ensemble \`order\`` */
export function noSuchVersion(what: string, ref: string, versions: readonly DefinitionVersion[]): OrchestratorError {
  const known = [...new Set(versions.map(({ version, label }) => label ?? version))];
  const has = known.length === 0 ? 'it has no labels' : `it has ${listOfNames(known)}`;
  const message = `${what} has no version ${quoted(ref)}: name \`latest\`, a label or a hash; ${has}`;
  return new OrchestratorError('VERSION_NOT_FOUND', message, { details: { ref, versions: known } });
}
