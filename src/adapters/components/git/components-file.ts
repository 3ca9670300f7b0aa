/** `components.yaml`: the components of a project, with kind, file and metadata. */

import { isMap, parseDocument, stringify } from 'yaml';
import { messageOf, OrchestratorError } from '../../../engine/base/errors.ts';
import type { Json } from '../../../engine/base/json/json.ts';
import { refuseUnknownKeys } from '../../../engine/base/read-options.ts';
import { readFilePath, readKind, readMetadata, readName } from '../../../engine/component/component-fields.ts';
import type { Registration } from '../../../engine/component/component-source.port.ts';

export const COMPONENTS_FILE = 'components.yaml';

/** @throws INVALID_REQUEST, which names the place @param where - the file, for messages */
export function parseComponents(text: string, where: string): ReadonlyMap<string, Registration> {
  const registrations = new Map<string, Registration>();
  for (const [name, fields] of Object.entries(readMap(text, where))) {
    try {
      registrations.set(name, readRegistration(name, fields));
    } catch (error) {
      throw problem(`${where}: \`${name}\`: ${(error as Error).message}`);
    }
  }
  return registrations;
}

/** Comments and order stay. */
export function editComponents(text: string, { name, kind, file, metadata }: Registration, where: string): string {
  const isNew = !Object.hasOwn(readMap(text, where), name);
  const hasMetadata = Object.keys(metadata).length > 0;
  const fields = { kind, ...(file !== undefined && { file }), ...(hasMetadata && { metadata }) };
  const document = parseDocument(text);
  const isBlock = document.contents === null || (isMap(document.contents) && !document.contents.flow);
  if (isNew && isBlock) return `${text}${/(?:^|\n)$/.test(text) ? '' : '\n'}${stringify({ [name]: fields })}`;
  document.setIn([name], document.createNode(fields));
  return document.toString({ lineWidth: 0 });
}

function readMap(text: string, where: string): Readonly<Record<string, Json>> {
  const document = parseDocument(text);
  const [error] = document.errors;
  if (error) throw problem(`${where} can't be read: ${error.message}`);
  const value = toValue(document, where);
  if (typeof value === 'object' && !Array.isArray(value)) return value as Readonly<Record<string, Json>>;
  throw problem(`${where} must have the names of components, each with its \`kind\` and \`file\``);
}

function toValue(document: ReturnType<typeof parseDocument>, where: string): unknown {
  try {
    return document.toJS({ maxAliasCount: 100 }) ?? {};
  } catch (error) {
    throw problem(`${where} can't be read: ${messageOf(error)}`);
  }
}

function readRegistration(name: string, fields: Json): Registration {
  if (typeof fields !== 'object' || fields === null || Array.isArray(fields))
    throw problem('must have `kind` and `file`');
  refuseUnknownKeys(fields, ['kind', 'file', 'metadata'], COMPONENTS_FILE);
  const { kind, file, metadata } = fields as Readonly<Record<string, Json>>;
  const path = readFilePath(file);
  return {
    ...{ name: readName(name), kind: readKind(kind), metadata: readMetadata(metadata) },
    ...(path !== undefined && { file: path }),
  };
}

function problem(message: string): OrchestratorError {
  return new OrchestratorError('INVALID_REQUEST', message);
}
