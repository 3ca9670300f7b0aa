/** Liquid for stored templates, through `liquidjs`: without files, with limits, and escaped in HTML. */

import { type FilterImplOptions, Liquid, type LiquidOptions } from 'liquidjs';
import { optional, readOptions } from '../../engine/base/read-options.ts';
import { isTimeZone } from '../../engine/base/time/cron.ts';
import type { TemplateEngine } from '../../engine/component/template-engine.port.ts';

export interface LiquidTemplatesOptions {
  /** The longest time to render one template, in ms. Default: 100. */
  readonly renderMs?: number | undefined;
  /** How much one template may build, in characters and items of lists. Default: 4,000,000. */
  readonly memory?: number | undefined;
  /** The time zone in which the filter `date` formats: a name such as `Europe/Berlin`. Default: `UTC`, whatever the zone of the process is. */
  readonly timezone?: string | undefined;
}

const DEFAULT_RENDER_MS = 100;
const DEFAULT_MEMORY = 4_000_000;
const MAX_TEMPLATE = 1024 * 1024;
/** The most tags and outputs: the package takes ever longer for each further one. */
const MAX_TAGS = 10_000;

/**
 * The template language Liquid for the option `templates`. Stored templates are then written in it: `{% for %}`, `{% if %}`, filters. It needs
 * the package `liquidjs`.
 *
 * In HTML, each output is escaped unless the template says `| raw`. A template reads only the own fields of the input of its agent, and no file:
 * `render`, `include` and `layout` fail.
 *
 * @throws TypeError for an unknown option and a wrong value
 * @example
 * ```ts no-run
 * import { createOrchestrator } from 'ensemble-orchestrator';
 * import { liquidTemplates } from 'ensemble-orchestrator/liquid';
 *
 * createOrchestrator({ templates: liquidTemplates() });
 * ```
 */
export function liquidTemplates(options: LiquidTemplatesOptions = {}): TemplateEngine {
  const aboveZero = optional<number>('a number above 0', (value) => Number.isFinite(value) && value > 0);
  const given = readOptions('liquidTemplates', options, {
    ...{ renderMs: aboveZero, memory: aboveZero },
    timezone: optional('the name of a time zone, such as `Europe/Berlin`', isTimeZone),
  });
  const { renderMs = DEFAULT_RENDER_MS, memory = DEFAULT_MEMORY, timezone = 'UTC' } = given;
  const settings: LiquidOptions = {
    timezoneOffset: timezone,
    ...{ ownPropertyOnly: true, strictFilters: true, dynamicPartials: false },
    // Partials come from here, and not from files.
    templates: {},
    ...{ parseLimit: MAX_TEMPLATE, renderLimit: renderMs, memoryLimit: memory },
  };
  const html = limitFilterTime(new Liquid({ ...settings, outputEscape: 'escape' }));
  const plain = limitFilterTime(new Liquid(settings));
  return {
    compile(text, { escapes }) {
      const tags = text.match(/\{[{%]/g)?.length ?? 0;
      if (tags > MAX_TAGS) throw new Error(`the template has ${tags} tags and outputs; at most ${MAX_TAGS} are parsed`);
      const liquid = escapes ? html : plain;
      const template = liquid.parse(text);
      return (data) => liquid.renderSync(template, data);
    },
  };
}

type Handler = Extract<FilterImplOptions, (...args: never[]) => unknown>;

/** Looks at the clock within filters that evaluate something for each item: the package looks only between tags. */
function limitFilterTime(liquid: Liquid): Liquid {
  for (const [name, filter] of Object.entries(liquid.filters)) {
    const { handler, raw = false } = typeof filter === 'function' ? { handler: filter } : filter;
    if (isGenerator(handler)) liquid.registerFilter(name, { raw, handler: withClock(handler) });
  }
  return liquid;
}

function isGenerator(handler: unknown): boolean {
  return Object.prototype.toString.call(handler) === '[object GeneratorFunction]';
}

function withClock(handler: Handler): Handler {
  return function* (this: ThisParameterType<Handler>, ...args: Parameters<Handler>) {
    const steps = handler.apply(this, args) as Generator<unknown, unknown, unknown>;
    for (let step = steps.next(); ; step = steps.next(yield step.value)) {
      if (step.done) return step.value;
      this.context.renderLimit.check(performance.now());
    }
  };
}
