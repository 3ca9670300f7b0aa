/**
 * What this process knows of components. A component is read again after half a second, so a deployment of another process counts within a
 * second. The text of a version never changes, so it is read once. While the source is away, the last known versions serve.
 */

import { isPromise, type MaybePromise } from '../../engine/base/maybe-promise.ts';
import type { ComponentContent } from '../../engine/component/component.ts';
import type { ComponentSource, StoredComponent } from '../../engine/component/component-source.port.ts';
import type { Clock } from '../../engine/host/clock.port.ts';
import type { Logger } from '../../engine/host/logger.port.ts';

export interface ComponentCache {
  /** @throws what the source throws, if nothing is known of the component */
  read(name: string): MaybePromise<StoredComponent | undefined>;
  /** @throws what the source throws, if the text is not known */
  content(name: string, version: string): MaybePromise<ComponentContent | undefined>;
  /** This process has changed the component. */
  forget(name: string): void;
}

interface Known {
  readonly component: StoredComponent | undefined;
  /** On the monotonic clock, ms. */
  readonly readAt: number;
}

/** How long a process goes by what it has read, ms. */
const KEPT_MS = 500;
/** How often a source that is away is tried again, and reported, ms. */
const AWAY_MS = 5_000;
const MAX_COMPONENTS = 10_000;
const MAX_TEXTS = 1_000;

export function createComponentCache(
  source: ComponentSource,
  { clock, logger }: { readonly clock: Clock; readonly logger: Logger },
): ComponentCache {
  const known = new Map<string, Known>();
  const reading = new Map<string, Promise<StoredComponent | undefined>>();
  const texts = new Map<string, ComponentContent>();

  const keep = (name: string, component: StoredComponent | undefined) => {
    put(known, name, { component, readAt: clock.monotonic() }, MAX_COMPONENTS);
    return component;
  };

  const onFailure = (name: string, err: unknown): StoredComponent | undefined => {
    const last = known.get(name);
    if (!last?.component) throw err;
    known.set(name, { ...last, readAt: clock.monotonic() + AWAY_MS - KEPT_MS });
    logger.warn({ err, component: name }, 'a component can not be read; its last known versions are used');
    return last.component;
  };

  const readAgain = (name: string): MaybePromise<StoredComponent | undefined> => {
    const begun = reading.get(name);
    if (begun) return begun;
    let read: MaybePromise<StoredComponent | undefined>;
    try {
      read = source.read(name);
    } catch (err) {
      return onFailure(name, err);
    }
    if (!isPromise(read)) return keep(name, read);
    const kept: Promise<StoredComponent | undefined> = Promise.resolve(read).then(
      (component) => (reading.get(name) === kept ? keep(name, component) : component),
      (err: unknown) => onFailure(name, err),
    );
    reading.set(name, kept);
    const done = () => {
      if (reading.get(name) === kept) reading.delete(name);
    };
    kept.then(done, done);
    return kept;
  };

  return {
    read(name) {
      const last = known.get(name);
      return last && clock.monotonic() - last.readAt < KEPT_MS ? last.component : readAgain(name);
    },
    content(name, version) {
      const key = `${name}@${version}`;
      const text = texts.get(key);
      if (text) return text;
      const read = source.content(name, version);
      const keepText = (content: ComponentContent | undefined) => {
        if (content) put(texts, key, content, MAX_TEXTS);
        return content;
      };
      return isPromise(read) ? Promise.resolve(read).then(keepText) : keepText(read);
    },
    forget(name) {
      known.delete(name);
      // What is being read may be older than the change.
      reading.delete(name);
    },
  };
}

/** Adds an entry, and removes the oldest one of too many. */
function put<T>(map: Map<string, T>, key: string, value: T, max: number): void {
  map.delete(key);
  map.set(key, value);
  const [oldest] = map.keys();
  if (map.size > max && oldest !== undefined) map.delete(oldest);
}
