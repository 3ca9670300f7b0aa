/** `api`: forms, multipart forms and binary bodies. */

import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../src/engine/base/json/json.ts';
import type { HttpRequest } from '../../src/engine/host/http.port.ts';
import { createTestOrchestrator, stubHttp } from '../../src/entries/testing.ts';
import { apiOperation } from '../../src/operations/api/api-operation.ts';
import type { ApiConfig } from '../../src/operations/api/config.ts';
import { operationContext } from './operation-context.ts';

const url = 'https://peer.example/upload';
const PNG = Uint8Array.from({ length: 256 }, (_, i) => i);
const photo = { content: Buffer.from(PNG).toString('base64'), contentType: 'image/png', encoding: 'base64' };

async function sent(config: object, idempotencyKey = 'key-1'): Promise<HttpRequest & { type: string | undefined }> {
  const http = stubHttp({ [url]: {} });
  const operation = apiOperation({ http });
  await operation.run(operationContext({ config: { url, method: 'POST', ...config } as ApiConfig, idempotencyKey }));
  const request = http.calls[0] as HttpRequest;
  return { ...request, type: request.headers?.['Content-Type'] };
}

const bytesOf = ({ body }: HttpRequest) => Buffer.from(body as Uint8Array);

/** What another implementation reads from the request. */
async function received(config: object): Promise<[string, FormDataEntryValue][]> {
  const { body, type } = await sent(config);
  const form = await new Response(body as BodyInit, { headers: { 'content-type': type as string } }).formData();
  return [...form] as [string, FormDataEntryValue][];
}

describe('api: form', () => {
  it('sends fields as a form, arrays as repeated names, without null', async () => {
    const form = { name: 'Zoë & co', n: 1, yes: true, tags: ['a', null, 'b+c'], none: null };
    const request = await sent({ form });
    expect(request.type).toBe('application/x-www-form-urlencoded');
    expect(request.body).toBe('name=Zo%C3%AB%20%26%20co&n=1&yes=true&tags=a&tags=b%2Bc');
    const own = await sent({ form, headers: { 'content-type': 'application/x-www-form-urlencoded; charset=utf-8' } });
    expect(own.type).toBeUndefined();
    expect((await sent({ form: {} })).body).toBe('');
  });
});

describe('api: multipart', () => {
  it('sends text, numbers and files; an array repeats its name, and null is left out', async () => {
    const parts = await received({
      multipart: {
        title: 'Zoë',
        amount: 2.5,
        public: false,
        none: null,
        tags: ['a', null, 'b'],
        photo,
        note: { content: 'plain\r\ntext', contentType: 'text/markdown', filename: 'note "1".md' },
        data: { content: '{"a":1}', contentType: 'application/json', size: 7 },
      },
    });
    const texts = parts.filter(([, value]) => typeof value === 'string');
    expect(texts).toEqual([
      ['title', 'Zoë'],
      ['amount', '2.5'],
      ['public', 'false'],
      ['tags', 'a'],
      ['tags', 'b'],
      ['data', '{"a":1}'],
    ]);
    const [image, note] = parts.flatMap(([name, value]) => (typeof value === 'string' ? [] : [{ name, value }]));
    // A file in base64 without a name has the name of its field, because servers recognise files by their names.
    expect([image?.name, image?.value.name, image?.value.type]).toEqual(['photo', 'photo', 'image/png']);
    expect(new Uint8Array((await image?.value.arrayBuffer()) as ArrayBuffer)).toEqual(PNG);
    expect([note?.value.name, note?.value.type, await note?.value.text()]).toEqual([
      'note "1".md',
      'text/markdown',
      'plain\r\ntext',
    ]);
  });

  it('sends the same bytes on every attempt; another step has another boundary', async () => {
    const [one, again, other] = await Promise.all(
      ['key-1', 'key-1', 'key-2'].map((key) => sent({ multipart: { a: 'x', photo } }, key)),
    );
    expect(bytesOf(again as HttpRequest).equals(bytesOf(one as HttpRequest))).toBe(true);
    expect(again?.type).toBe(one?.type);
    expect(other?.type).not.toBe(one?.type);
  });

  it('the boundary depends on the content, so that content from outside can not end its part', async () => {
    const { type } = await sent({ multipart: { a: 'x' } });
    const boundary = (type as string).split('boundary=')[1] as string;
    const hostile = `x\r\n--${boundary}\r\nContent-Disposition: form-data; name="admin"\r\n\r\ntrue`;
    expect(await received({ multipart: { a: hostile } })).toEqual([['a', hostile]]);
  });

  it('quotes and line breaks in names and file names begin no other header', async () => {
    const name = 'a"\r\nX-Admin: 1\r\n\r\nb';
    const request = await sent({ multipart: { [name]: { ...photo, filename: name } } });
    const head = bytesOf(request).toString('latin1').split('\r\n\r\n')[0] as string;
    expect(head.split('\r\n').slice(1)).toEqual([
      'Content-Disposition: form-data; name="a%22%0D%0AX-Admin: 1%0D%0A%0D%0Ab"; filename="a%22%0D%0AX-Admin: 1%0D%0A%0D%0Ab"',
      'Content-Type: image/png',
    ]);
  });

  it.each<[string, object, RegExp]>([
    [
      'a line break in a content type',
      { multipart: { f: { ...photo, contentType: 'a/b\r\nX: 1' } } },
      /^'config\.multipart\.f' was refused: header Content-Type holds a control character/,
    ],
    [
      'content that is not base64',
      { multipart: { f: { ...photo, content: '***' } } },
      /^'config\.multipart\.f' has a content that is not valid base64$/,
    ],
    ['binary content that is not base64', { binary: { ...photo, content: '*' } }, /^'config\.binary' has a content/],
    [
      'an own content type, which would lack the boundary',
      { multipart: { a: 'x' }, headers: { 'content-type': 'multipart/form-data' } },
      /^header Content-Type is set in addition to 'multipart'/,
    ],
  ])('refuses %s without a call, not retryable', async (_what, config, message) => {
    await expect(sent(config)).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      retryable: false,
      message: expect.stringMatching(message),
    });
  });
});

describe('api: binary', () => {
  it('sends the bytes of a file with its content type, unless a header sets another', async () => {
    const request = await sent({ binary: photo });
    expect([request.type, new Uint8Array(bytesOf(request))]).toEqual(['image/png', PNG]);
    expect((await sent({ binary: { content: 'é' } })).type).toBe('application/octet-stream');
    expect(bytesOf(await sent({ binary: { content: 'é', encoding: 'utf8' } })).toString()).toBe('é');
    const own = await sent({ binary: photo, headers: { 'content-type': 'image/x-icon' } });
    expect({ ...own.headers }).toEqual({
      'content-type': 'image/x-icon',
      'Idempotency-Key': 'key-1',
      'X-Ensemble-Hops': '1',
    });
  });

  it('the binary body of an answer can be sent on, as a body and as a part', async () => {
    const http = stubHttp({
      'GET https://a.example/logo.png': { bytes: PNG, headers: { 'content-type': 'image/png' } },
      [`PUT ${url}`]: {},
      [`POST ${url}`]: {},
    });
    const config = { url: 'https://a.example/logo.png' };
    const file = '${logo.output.body}';
    const orchestrator = createTestOrchestrator({
      http,
      ensembles: [
        {
          name: 'copy',
          flow: [
            { agent: 'logo', operation: 'api', config },
            { agent: 'put', operation: 'api', config: { url, method: 'PUT', binary: file } },
            {
              agent: 'post',
              operation: 'api',
              config: { url, method: 'POST', multipart: { logo: file, none: '${null}' } },
            },
            { agent: 'save', operation: 'storage', config: { type: 'r2', action: 'put', key: 'logo', value: file } },
            { agent: 'load', operation: 'storage', config: { type: 'r2', action: 'get', key: 'logo' } },
            { agent: 'again', operation: 'api', config: { url, method: 'PUT', binary: '${load.output}' } },
          ],
        },
      ],
    });
    expect(await orchestrator.execute('copy')).toMatchObject({ status: 'completed' });
    const [, put, post, again] = http.calls as [unknown, HttpRequest, HttpRequest, HttpRequest];
    expect(new Uint8Array(bytesOf(put))).toEqual(PNG);
    expect(new Uint8Array(bytesOf(again))).toEqual(PNG);
    expect(bytesOf(post).includes(Buffer.from(PNG))).toBe(true);
  });
});

describe('api: which body', () => {
  const operation = apiOperation({ http: stubHttp() });
  const check = (config: JsonObject) =>
    operation.check?.(config).map((issue) => `${issue.path.join('.')}: ${issue.message}`);

  it.each<[string, JsonObject, RegExp]>([
    [
      'body and form',
      { method: 'POST', body: {}, form: {} },
      /^form: is set in addition to 'body'; a request has one body/,
    ],
    [
      'a form and an expression',
      { method: 'POST', form: {}, binary: '${input.file}' },
      /^binary: .*in addition to 'form'/,
    ],
    ['a form with the default method', { form: {} }, /^form: can't be sent with GET/],
    ['multipart with HEAD', { method: 'head', multipart: {} }, /^multipart: can't be sent with HEAD/],
    [
      'multipart with a content type',
      { method: 'POST', multipart: {}, headers: { 'content-type': 'multipart/form-data' } },
      /^headers\.content-type: .*in addition to 'multipart'/,
    ],
  ])('%s is refused at load', (_what, config, message) => {
    expect(check({ url, ...config })).toEqual([expect.stringMatching(message)]);
  });

  it('null is no body, and any method of an expression may have one', () => {
    expect(check({ url, method: 'POST', form: {}, body: null, multipart: null, binary: null })).toEqual([]);
    expect(check({ url, method: '${input.method}', form: {} })).toEqual([]);
  });

  it.each<[string, object, RegExp]>([
    ['a nested form', { form: { a: { b: 1 } } }, /^form\.a: expected a string, number/],
    ['a part that is no file', { multipart: { a: { b: 1 } } }, /^multipart\.a: expected text, a number.*a file/],
    ['a misspelled key of a file', { multipart: { a: [{ content: '', fileName: 'x' }] } }, /^multipart\.a: expected/],
    ['an encoding that nobody knows', { binary: { content: '', encoding: 'hex' } }, /^binary: expected a file/],
    ['text as a file', { binary: 'text' }, /^binary: expected a file: \{ content/],
  ])('the schema refuses %s', async (_what, config, message) => {
    const result = await operation.config?.['~standard'].validate({ url, ...config });
    const issues = (result?.issues ?? []).map((issue) => `${issue.path?.join('.')}: ${issue.message}`);
    expect(issues).toEqual([expect.stringMatching(message)]);
  });
});
