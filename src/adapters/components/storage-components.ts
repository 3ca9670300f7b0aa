/**
 * Components as documents of a storage: one document for each component, with its versions and deployments, and one for each text. A text is
 * named by its hash and stored first, so a version never has the text of another one.
 */

import { hashJson } from '../../engine/base/bytes/hash.ts';
import type { Json, JsonObject } from '../../engine/base/json/json.ts';
import { andThen, type MaybePromise } from '../../engine/base/maybe-promise.ts';
import type { ComponentContent, ComponentVersion, Deployment } from '../../engine/component/component.ts';
import type { ComponentSource, Registration, StoredComponent } from '../../engine/component/component-source.port.ts';
import type { Clock } from '../../engine/host/clock.port.ts';
import type { DocumentStore, StoredDocument } from '../../engine/storage/document-store.port.ts';
import { registrationTag } from './registration-tag.ts';

interface ComponentDocument extends Omit<Registration, 'name'> {
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly versions: readonly (ComponentVersion & { readonly hash: string })[];
  readonly deployments: readonly Deployment[];
}

const KIND = 'component';
const TEXT_KIND = 'component-text';

/** @param clock - for the expiry of other documents only */
export function storageComponents(documents: DocumentStore, clock: Clock): ComponentSource {
  const find = (name: string): MaybePromise<StoredDocument | undefined> => documents.read(KIND, name, clock.now());

  const write = (name: string, expectedVersion: number, value: ComponentDocument) => {
    const document = { value: value as unknown as JsonObject, tag: registrationTag(value), updatedAt: value.updatedAt };
    return documents.write(KIND, name, { expectedVersion, document, now: clock.now() });
  };

  return {
    read: (name) => andThen(find(name), (found) => found && toComponent(found)),
    list: ({ limit, after }) =>
      andThen(documents.list(KIND, { limit, now: clock.now(), ...(after !== undefined && { after }) }), (found) =>
        found.map(toComponent),
      ),
    async content(name, version) {
      const found = await find(name);
      const hash = found && documentOf(found).versions.find((one) => one.version === version)?.hash;
      const text = hash === undefined ? undefined : await documents.read(TEXT_KIND, hash, clock.now());
      return text?.value as unknown as ComponentContent | undefined;
    },
    async register({ name, ...registration }, expected, now) {
      const found = await find(name);
      if (expected === undefined ? found : found?.tag !== expected) return undefined;
      const made = { createdAt: now, versions: [], deployments: [], ...(found && documentOf(found)) };
      const { file: _file, ...kept } = made as ComponentDocument;
      const next = { ...kept, ...registration, updatedAt: now };
      const isWritten = await write(name, found?.version ?? 0, next);
      return isWritten
        ? toComponent({ name, value: next as unknown as JsonObject, tag: registrationTag(next) })
        : undefined;
    },
    async addVersion(name, version, content) {
      const value = content as unknown as JsonObject;
      const hash = hashJson(value);
      const now = clock.now();
      const document = { value, tag: '', updatedAt: now };
      // It may be stored already: then it is the same.
      await documents.write(TEXT_KIND, hash, { expectedVersion: 0, document, now });
      for (;;) {
        const found = await find(name);
        const component = found && documentOf(found);
        if (!component || component.versions.some((one) => one.version === version.version)) return false;
        const next = { ...component, versions: [...component.versions, { ...version, hash }] };
        if (await write(name, found.version, next)) return true;
      }
    },
    async move(name, { environment, expected, deployment }) {
      for (;;) {
        const found = await find(name);
        if (!found) return false;
        const component = documentOf(found);
        const current = component.deployments.find((one) => one.environment === environment);
        if (!isSame(current, expected)) return false;
        if (deployment && !component.versions.some(({ version }) => version === deployment.version)) return false;
        const others = component.deployments.filter((one) => one !== current);
        const next = { ...component, deployments: deployment ? [...others, deployment] : others };
        if (await write(name, found.version, next)) return true;
      }
    },
  };
}

function isSame(a: Deployment | undefined, b: Deployment | undefined): boolean {
  return hashJson((a ?? null) as Json) === hashJson((b ?? null) as Json);
}

function documentOf({ value }: Pick<StoredDocument, 'value'>): ComponentDocument {
  return value as unknown as ComponentDocument;
}

function toComponent({ name, value, tag }: Pick<StoredDocument, 'name' | 'value' | 'tag'>): StoredComponent {
  const { versions, ...rest } = documentOf({ value });
  return { name, ...rest, tag, versions: versions.map(({ hash: _hash, ...version }) => version) };
}
