/** Checks the JSON Schemas of a config. */

import { OrchestratorError } from '../base/errors.ts';
import { formatPath, type JsonObject } from '../base/json/json.ts';
import type { ConfigIssue } from '../operation/operation.port.ts';
import { checkJsonSchema } from './check-json-schema.ts';
import { compileJsonSchema } from './compile-json-schema.ts';
import type { ValueCheck, ValueProblem } from './rule.ts';

type Path = readonly (string | number)[];

/** @param path - the path of the schema in the config */
export function schemaIssues(schema: JsonObject, path: Path): ConfigIssue[] {
  const issues: ConfigIssue[] = [];
  checkJsonSchema(schema, path, ({ path: at, message, suggestion }) => {
    issues.push({ path: at, message, ...(suggestion !== undefined && { suggestion }) });
  });
  return issues;
}

/** The check of values by a schema of an evaluated config. @throws OrchestratorError `INVALID_INPUT` for a wrong schema */
export function checkBySchema(schema: JsonObject, path: Path, what: string): ValueCheck {
  const [first] = schemaIssues(schema, path);
  if (first) {
    throw new OrchestratorError('INVALID_INPUT', `${formatPath(['config', ...first.path])}: ${first.message}`);
  }
  return compileJsonSchema(schema, what);
}

const MAX_PROBLEMS = 20;

/** The problems of a value, for the model and for people. */
export function describeProblems(problems: readonly ValueProblem[]): string {
  const texts = problems.map(({ path, message }) => `${path === '' ? 'the value' : `\`${path}\``} ${message}`);
  const more = texts.length > MAX_PROBLEMS ? ['...'] : [];
  return [...texts.slice(0, MAX_PROBLEMS), ...more].join('; ');
}
