/** The titles of the published suites: an author of an adapter finds a failed rule by its title. */

import { describe, expect, it } from 'vitest';
import { memoryStorage } from '../../src/adapters/storage/memory/memory-storage.ts';
import { dataSuite, httpSuite, type SuiteRunner, storageSuite, tokenSuite } from '../../src/entries/conformance.ts';

const PARTS = [
  ...(['workers', 'executions', 'signals', 'state', 'schedules'] as const),
  ...(['definitions', 'documents', 'deliveries', 'usage', 'rates', 'tokens', 'tallies', 'kv', 'objects'] as const),
];
/** What a test can be about, other than methods of its part. */
const TOPICS = [
  ...['reopen', 'commit', 'start', 'release', 'epoch', 'values', 'decisions', 'blame', 'waitsFor', 'handover', 'kind'],
  ...['capabilities', 'close', 'watch', 'handles', 'slots', 'limits'],
];

/** The titles that a suite declares, each with the titles of its groups. */
function titlesOf(declare: (test: SuiteRunner) => void): readonly string[] {
  const titles: string[] = [];
  const groups: string[] = [];
  declare({
    describe(name, body) {
      groups.push(name);
      body();
      groups.pop();
    },
    it: (name) => titles.push([...groups, name].join(' > ')),
  });
  return titles;
}

const create = () => memoryStorage();
const reopen = create;
const name = 'x';

describe('the titles of a suite', () => {
  it.each<[string, (test: SuiteRunner) => void]>([
    ['storageSuite with one worker', (test) => storageSuite({ name, create, reopen, test })],
    ['storageSuite with many workers', (test) => storageSuite({ name, create, reopen, workers: 'many', test })],
    ['dataSuite', (test) => dataSuite({ name, create, reopen, test })],
    ['tokenSuite', (test) => tokenSuite({ name, create, reopen, test })],
    [
      'httpSuite',
      (test) => httpSuite({ name, create: () => ({ send: () => Promise.reject() }), peer: () => '', test }),
    ],
  ])('%s: are unique', (_suite, declare) => {
    const titles = titlesOf(declare);
    expect(titles.length).toBeGreaterThan(10);
    expect(titles.filter((title, index) => titles.indexOf(title) !== index)).toEqual([]);
  });

  const titlesOfStorage = () => titlesOf((test) => storageSuite({ name, create, reopen, workers: 'many', test }));
  /** The methods of each part of the port. */
  const methodsOf = Object.fromEntries(
    PARTS.map((part) => [part, Object.keys(memoryStorage()[part]).filter((key) => key !== 'kind')]),
  );

  it('storageSuite: name the part, and then its methods or what else they are about', () => {
    const malformed = titlesOfStorage().filter((title) => {
      const [, group = '', about = ''] = /^x as a Storage > (\w+) > ([^:]+): \S/.exec(title) ?? [];
      const words = about.split(/, | and /);
      return !words.every((word) => [...TOPICS, ...(methodsOf[group] ?? [])].includes(word));
    });
    expect(malformed).toEqual([]);
  });

  it('storageSuite: each method of the port has a test in the group of its part', () => {
    const tested = new Set(
      titlesOfStorage().flatMap((title) => {
        const [, group = '', about = ''] = /^x as a Storage > (\w+) > ([^:]+):/.exec(title) ?? [];
        return about.split(/, | and /).map((word) => `${group}.${word}`);
      }),
    );
    const all = PARTS.flatMap((part) => (methodsOf[part] ?? []).map((method) => `${part}.${method}`));
    expect(all.filter((method) => !tested.has(method))).toEqual([]);
  });

  it('storageSuite: each part has tests that open the store again', () => {
    const reopened = titlesOfStorage().flatMap((title) => /^x as a Storage > (\w+) > reopen: /.exec(title)?.[1] ?? []);
    // Counts of requests need not survive.
    const kept = PARTS.filter((part) => part !== 'rates');
    expect([...new Set(reopened)].sort()).toEqual([...kept, 'commits'].sort());
  });
});
