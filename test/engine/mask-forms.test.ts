/** The spellings of a secret that are masked, and the loggers that receive the masked values. */

import { describe, expect, it } from 'vitest';
import type { Logger } from '../../src/engine/host/logger.port.ts';
import { findTexts } from '../../src/engine/interpreter/attempt/find-texts.ts';
import { createMasking } from '../../src/engine/interpreter/attempt/mask-secrets.ts';
import { fetchHttp } from '../../src/index.ts';
import { boom, code, scene } from './scene.ts';

const api = (url: string) => ({ agent: 'call', operation: 'api', config: { url } });

/** The error in the record of a run that called a URL with the secret. */
async function failureOf(url: string, secret: string): Promise<string> {
  // Port 9 is refused before anything is sent, so the message contains the whole URL.
  const { run } = scene([api(url)], { secrets: { KEY: secret }, http: fetchHttp() as never });
  return (await run()).error?.message ?? '';
}

describe('a secret in a URL is masked in the failure of the call, in the spelling of the URL parser', () => {
  it.each([
    ['in the host, in lower case', 'http://${env.KEY}.example:9/x', 'MixedCaseHostSecret'],
    ['as the scheme, in lower case', '${env.KEY}://peer.example/', 'Hunter2SecretToken'],
    ['in the host, in punycode', 'http://${env.KEY}.example:9/x', 'geheimnisträger'],
    ['in the host, as the IPv4 address that a number is', 'http://${env.KEY}:9/x', '3232235777'],
    ['in the path', 'http://peer.example:9/${env.KEY}/x', 'pä ss:w@rd/+=&'],
    ['in the path, with quotes and a backslash', 'http://peer.example:9/${env.KEY}/x', 'pa"s sw\\ord`{}'],
    ['at the end of the path, with a space at its end', 'http://peer.example:9/${env.KEY}', 'pass wörd '],
    ['in the path, up to its question mark', 'http://peer.example:9/${env.KEY}', 'first-part?second-part'],
    [
      'in the path, at the place at which a long path is cut',
      `http://peer.example:9/${'x'.repeat(186)}/\${env.KEY}/${'y'.repeat(5_000)}`,
      'pl4nted-secret',
    ],
  ])('%s', async (_where, url, secret) => {
    const message = await failureOf(url, secret);
    expect(message).toContain('***');
    for (const part of secret.toLowerCase().split(/[^a-z0-9]/))
      if (part.length > 3) expect(message.toLowerCase()).not.toContain(part);
  });

  it('a message with a long path is cut in its middle, and still contains the problem', async () => {
    const message = await failureOf(`http://peer.example:9/${'x'.repeat(20_000)}`, 'not-in-there');
    expect(message.length).toBe(4096);
    expect(message).toMatch(/^GET http:\/\/peer\.example:9\/x+\.\.\.x+ was refused: port 9 is not 80/);
  });
});

describe('masking', () => {
  const SECRET = 'pl4nted "odd" \\ ümläut\n& <b>';
  const { text, json } = createMasking([SECRET, '12345678']);

  it.each([
    ['as it is', SECRET],
    ['in JSON', JSON.stringify({ a: SECRET })],
    [
      'in JSON with only ASCII',
      JSON.stringify({ a: SECRET }).replace(/[^\0-~]/g, (c) => `\\u00${c.charCodeAt(0).toString(16)}`),
    ],
    ['as a query', new URL(`http://h/?${SECRET}`).search],
    ['as a path', new URL(`http://h/a/${SECRET}/b`).pathname],
  ])('finds a secret %s', (_how, given) => {
    expect(text(given)).toContain('***');
    expect(text(given)).not.toMatch(/pl4nted|odd|ml.{1,6}ut/);
  });

  it('JSON is masked by value: strings and keys, at any depth; it stays JSON, and numbers stay', () => {
    const value = {
      id: 12345678,
      [`key ${SECRET}`]: [{ deep: `a ${SECRET} b` }],
      inner: JSON.stringify([SECRET]),
      text: '12345678',
      none: undefined,
    };
    expect(JSON.parse(json(value) as string)).toEqual({
      id: 12345678,
      'key ***': [{ deep: 'a *** b' }],
      inner: '["***"]',
      text: '***',
    });
  });

  it('a string whose JSON escape would complete a secret stays as it is', () => {
    const { json: masked } = createMasking(['nlineend']);
    expect(masked({ a: 'x\nlineend' })).toBe(JSON.stringify({ a: 'x\nlineend' }));
  });

  it('without secrets, the result is that of JSON.stringify', () => {
    const plain = createMasking([]);
    expect([plain.json({ a: [1, 'x'] }), plain.json(undefined), plain.text('x')]).toEqual([
      '{"a":[1,"x"]}',
      undefined,
      'x',
    ]);
  });

  it('links are masked in JSON too', () => {
    const link = `https://flows.example/signals/abc_D-1.${'0f'.repeat(32)}`;
    expect(createMasking([], true).json({ link })).toBe('{"link":"https://flows.example/signals/***"}');
  });
});

describe('searching many texts at once', () => {
  it('finds what separate searches find, at any place', () => {
    let seed = 7;
    const draw = (below: number) => {
      seed = (seed * 48_271) % 2_147_483_647;
      return seed % below;
    };
    const word = (length: number) => Array.from({ length }, () => 'abé\u{1f600}'[draw(5)]).join('');
    for (let round = 0; round < 2_000; round++) {
      const texts = Array.from({ length: 1 + draw(5) }, () => word(2 + draw(4)));
      const given = word(draw(40));
      const finder = findTexts(texts);
      expect(finder.isIn(given)).toBe(texts.some((one) => given.includes(one)));
      const longest = [...texts].sort((a, b) => b.length - a.length);
      let expected = '';
      for (let at = 0; at < given.length; ) {
        const found = longest.find((one) => given.startsWith(one, at));
        expected += found === undefined ? given[at] : '#';
        at += found?.length ?? 1;
      }
      expect([texts, given, finder.replace(given, '#')]).toEqual([texts, given, expected]);
    }
  });
});

describe('a logger', () => {
  const SECRET = 'pl4nted-secret';
  const logTo = (lines: unknown[]): Logger => {
    const write = (fields: object, message?: string) =>
      void lines.push(JSON.parse(JSON.stringify([fields, message ?? null])));
    return { debug: write, info: write, warn: write, error: write };
  };
  /** What the logger receives when a script logs. */
  const logged = async (fields: object): Promise<string> => {
    const lines: [fields: unknown, message: string][] = [];
    const { run } = scene([code('a', 'log')], {
      secrets: { KEY: SECRET },
      logger: logTo(lines),
      scripts: { log: ({ logger }) => logger.warn(fields, 'said') },
    });
    expect((await run()).status).toBe('completed');
    const said = lines.filter(([, message]) => message === 'said');
    expect(said).toHaveLength(1);
    // The fields of the script's call, without those that every line of the agent has.
    const own = Object.entries(said[0]?.[0] as object).filter(([key]) => Object.hasOwn(fields, key));
    return JSON.stringify([Object.fromEntries(own), 'said']);
  };

  it('receives only own data: no function, no getter, no toJSON, no bytes', async () => {
    class Inherited {
      own = 1;
      get secret() {
        return SECRET;
      }
      toJSON() {
        return SECRET;
      }
    }
    const own = {
      value: 2,
      toJSON: () => SECRET,
      get secret() {
        return SECRET;
      },
    };
    expect(
      await logged({
        own,
        inherited: new Inherited(),
        bytes: new TextEncoder().encode(SECRET),
        at: new Date(0),
        count: 10n,
      }),
    ).toBe(
      '[{"own":{"value":2},"inherited":{"own":1},"bytes":"14 bytes","at":"1970-01-01T00:00:00.000Z","count":"10"},"said"]',
    );
  });

  it('receives the causes of an error, masked', async () => {
    const line = await logged({
      err: new Error('outer', {
        cause: Object.assign(new TypeError(`inner ${SECRET}`), { code: 'ECONNREFUSED', query: 'select 1' }),
      }),
    });
    expect(JSON.parse(line)[0].err).toMatchObject({
      name: 'Error',
      message: 'outer',
      cause: { name: 'TypeError', message: 'inner ***', code: 'ECONNREFUSED' },
    });
    expect(line).not.toContain('select 1');
    expect(line).not.toContain(SECRET);
  });

  it('receives circular and very large values cut', async () => {
    const circle: { again?: unknown; twice?: unknown } = {};
    Object.assign(circle, { again: circle, twice: circle });
    expect((await logged({ circle, many: Array.from({ length: 1_000_000 }, () => 'x') })).length).toBeLessThan(500_000);
  });

  it('receives an error whose message is a getter that throws, or not a string', async () => {
    const throwing = Object.defineProperty(new Error('x'), 'message', {
      get: () => {
        throw new Error('no');
      },
    });
    const odd = Object.assign(new Error('x'), { message: { toString: () => SECRET }, stack: 7 });
    expect(await logged({ throwing, odd })).toContain('"message":""');
  });

  it.each([
    [
      'throws',
      () => {
        throw new Error('the disk is full');
      },
    ],
    ['rejects', () => Promise.reject(new Error('the disk is full'))],
  ])('that %s affects no run', async (_how, write) => {
    const unhandled: unknown[] = [];
    const note = (reason: unknown) => void unhandled.push(reason);
    process.on('unhandledRejection', note);
    try {
      const logger = { debug: write, info: write, warn: write, error: write } as unknown as Logger;
      const { run, orchestrator } = scene([code('a', 'log'), boom('b')], {
        logger,
        scripts: { log: (context) => context.logger.error({}, 'x') },
      });
      orchestrator.on('agent.failed', () => {
        throw new Error('a listener that throws is logged');
      });
      expect(await run()).toMatchObject({ status: 'failed', error: { message: 'boom in b' } });
      await new Promise((resolve) => setImmediate(resolve));
      expect(unhandled).toEqual([]);
    } finally {
      process.off('unhandledRejection', note);
    }
  });

  it.each([
    [
      'is a getter that throws',
      () =>
        Object.defineProperty(new Error('x'), 'message', {
          get: () => {
            throw new Error('no');
          },
        }),
    ],
    ['is not a string', () => Object.assign(new Error('x'), { message: { a: 1 }, name: 7 })],
  ])('an error whose message %s fails its agent, and nothing else', async (_how, make) => {
    const { run } = scene([code('a', 'odd')], {
      scripts: {
        odd: () => {
          throw make();
        },
      },
    });
    expect(await run()).toMatchObject({
      status: 'failed',
      error: { code: 'AGENT_FAILED', message: expect.any(String) },
    });
  });
});
