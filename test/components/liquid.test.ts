/** Stored templates in Liquid: what they can do, and what they can't reach. */

import { describe, expect, it, vi } from 'vitest';
import { liquidTemplates } from '../../src/entries/liquid.ts';
import { createOrchestrator, defineOperation, type OrchestratorOptions } from '../../src/index.ts';

const show = defineOperation({
  name: 'show',
  texts: { page: 'html', text: 'template' },
  run: ({ config }) => config,
});
const ENSEMBLE = `
name: e
flow:
  - { agent: a, operation: show, config: { page: "template://page@latest", text: "template://page@latest" } }
outputs: { page: "\${a.output.page}", text: "\${a.output.text}" }
`;

async function fill(content: string, input: object, options: OrchestratorOptions = {}) {
  const orchestrator = createOrchestrator({
    ...{ logger: false, operations: [show], ensembles: [ENSEMBLE], templates: liquidTemplates() },
    ...options,
  });
  await orchestrator.components.register({ name: 'page', kind: 'template' });
  await orchestrator.components.createVersion('page', { version: 'v1.0.0', content });
  const { output, error } = await orchestrator.execute('e', input);
  return { ...(output as { readonly page: string; readonly text: string }), error };
}

describe('a stored template in Liquid', () => {
  it('formats a date in UTC, or in the zone of the option, whatever the zone of the process is', async () => {
    const zone = process.env.TZ;
    const template = '{{ at | date: "%Y-%m-%d %H:%M" }}';
    const at = { at: '2026-01-01T02:30:00Z' };
    try {
      for (const TZ of ['America/New_York', 'Asia/Tokyo', 'UTC']) {
        process.env.TZ = TZ;
        expect((await fill(template, at)).text).toBe('2026-01-01 02:30');
        const templates = liquidTemplates({ timezone: 'America/New_York' });
        expect((await fill(template, at, { templates })).text).toBe('2025-12-31 21:30');
      }
    } finally {
      if (zone === undefined) delete process.env.TZ;
      else process.env.TZ = zone;
    }
    expect(() => liquidTemplates({ timezone: 'Mars/Base' })).toThrow('`timezone` must be the name of a time zone');
  });

  it('has loops, conditions and filters, and is escaped in HTML unless it says otherwise', async () => {
    const template =
      '{% for item in items %}<b>{{ item.name | upcase }}</b>{% unless forloop.last %}, {% endunless %}{% endfor %}{{ note | raw }} ${input.x}';
    const { page, text } = await fill(template, { items: [{ name: '<i>' }, { name: 'b' }], note: '<hr>' });
    expect(page).toBe('<b>&lt;I&gt;</b>, <b>B</b><hr> ${input.x}');
    expect(text).toBe('<b><I></b>, <b>B</b><hr> ${input.x}');
  });

  it.each([
    [
      'the constructor of a value',
      '[{{ x.constructor }}{{ x.constructor.name }}{{ x.__proto__ }}{{ list.constructor.prototype }}]',
    ],
    ['a property of the prototype', "[{{ list | map: 'constructor' | join }}{{ x.toString }}{{ x.hasOwnProperty }}]"],
    ['the process and its globals', '[{{ process.env }}{{ global }}{{ this }}{{ require }}]'],
  ])('does not reach %s', async (_title, template) => {
    expect((await fill(template, { x: { a: 1 }, list: [{ a: 1 }] })).text).toBe('[]');
  });

  it.each([
    ['{% render "/etc/passwd" %}'],
    ['{% render "package.json" %}'],
    ['{% include "../package.json" %}'],
    ['{% layout "package.json" %}'],
    ['{% include path %}'],
  ])('reads no file: %s', async (template) => {
    const refused = await fill(template, { path: '/etc/passwd' }).catch((error: Error) => ({ error, text: undefined }));
    expect(refused.text).toBeUndefined();
    expect(refused.error?.message).not.toContain('root:');
  });

  it.each([
    ['a long loop', '{% for i in (1..30000000) %}x{% endfor %}'],
    [
      'nested loops',
      '{% for i in (1..3000) %}{% for j in (1..3000) %}{% for k in (1..3000) %}{% endfor %}{% endfor %}{% endfor %}',
    ],
    ['a text that grows by `replace`', "{{ text | replace: 'a', text | replace: 'a', text | replace: 'a', text }}"],
    [
      'a text that grows by `append`',
      '{% assign t = text %}{% for i in (1..200) %}{% assign t = t | append: t %}{% endfor %}{{ t }}',
    ],
  ])('ends at a limit: %s', async (_title, template) => {
    const begun = performance.now();
    const { error } = await fill(template, { text: 'a'.repeat(1_000) });
    expect(error).toMatchObject({ code: 'EXPRESSION_ERROR', message: expect.stringContaining('limit exceeded') });
    expect(performance.now() - begun).toBeLessThan(5_000);
  });

  it.each(['where_exp: "n", "n > 0"', 'group_by_exp: "n", "n"', 'sort | where_exp: "n", "n > 0"'])(
    'looks at the clock for each item within a filter: %s',
    (filter) => {
      const render = liquidTemplates({ renderMs: 100 }).compile(`{{ items | ${filter} | size }}`, { escapes: false });
      const items = Array.from({ length: 50 }, (_, n) => n + 1);
      let now = 0;
      const clock = vi.spyOn(performance, 'now').mockImplementation(() => {
        now += 5;
        return now;
      });
      try {
        expect(() => render({ items })).toThrow('render limit exceeded');
        expect(now).toBeLessThan(200);
      } finally {
        clock.mockRestore();
      }
      expect(Number(render({ items }))).toBeGreaterThan(0);
    },
  );

  it('with more than 10,000 tags is refused before it is parsed, when its version is created', async () => {
    await expect(fill('{{ a }}'.repeat(10_001), {})).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      message: expect.stringContaining('10001 tags and outputs; at most 10000'),
    });
    const templates = liquidTemplates({ renderMs: 60_000 });
    expect((await fill('{{ a }}'.repeat(10_000), { a: 'x' }, { templates })).text).toBe('x'.repeat(10_000));
  });

  it('data of an input is never read as a template', async () => {
    expect((await fill('{{ name }}', { name: '{{ 1 | plus: 1 }}{% for %}' })).text).toBe('{{ 1 | plus: 1 }}{% for %}');
  });

  it('that is not valid is refused when its version is created, with the place', async () => {
    await expect(fill('{% for x %}', {})).rejects.toThrow(/`content` can't be read as a template: .*line:1/);
    await expect(fill('{{ name | shout }}', {})).rejects.toThrow(/undefined filter: shout/);
  });

  it('needs the option: without it, a template with tags fails its agent with what to set', async () => {
    const { error } = await fill('{% if x %}y{% endif %}', {}, { templates: undefined as never });
    expect(error).toMatchObject({
      code: 'NOT_CONFIGURED',
      message: expect.stringContaining('set the option `templates: liquidTemplates()`'),
    });
  });
});
