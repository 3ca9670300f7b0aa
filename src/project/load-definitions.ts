/** The definitions of a project in the forms in which they are stored, to compare them. */

import type { JsonObject } from '../engine/base/json/json.ts';
import { compileHost } from '../orchestrator/create-orchestrator.ts';
import { loadEnsembles } from '../orchestrator/definitions/load-definitions.ts';
import type { ProjectOptions } from './load-project.ts';

/** A definition of a project. */
export interface LoadedDefinition {
  readonly name: string;
  /** Its hash. */
  readonly version: string;
  /** As it was written, in the form in which definitions are stored. */
  readonly written: JsonObject;
  /** With the shared agents that it uses. */
  readonly whole: JsonObject;
  /** Its file, as a user writes it. Absent for a definition in code. */
  readonly file?: string;
}

/** @throws INVALID_DEFINITION, NOT_CONFIGURED */
export function loadDefinitions(options: ProjectOptions): readonly LoadedDefinition[] {
  return [...loadEnsembles(options.ensembles ?? [], compileHost(options)).values()].map(
    ({ compiled: { name, definition, stored } }) => ({
      ...{ name, version: stored.version, whole: stored.definition },
      written: JSON.parse(JSON.stringify(definition)) as JsonObject,
    }),
  );
}
