/** The scripts of the engine suite. The process that runs them records each call as an effect. */

import type { Json } from '../../../engine/base/json/json.ts';
import type { Clock } from '../../../engine/host/clock.port.ts';
import type { SuiteScript, SuiteScriptContext } from './subject.ts';

/** @param clock - the clock of the process that runs them */
export function suiteScripts(clock: Clock): Readonly<Record<string, SuiteScript>> {
  const number = (value: Json | undefined) => (typeof value === 'number' ? value : 0);
  return {
    /** Returns its input. */
    echo: ({ input }) => input,
    /** Throws `boom in NAME`. */
    boom({ execution }) {
      throw new Error(`boom in ${execution.agent}`);
    },
    /** Throws before attempt `config.passesAt`; from then on, returns the number of the attempt. */
    flaky({ config, execution }) {
      if (execution.attempt >= number(config.passesAt)) return execution.attempt;
      throw new Error(`attempt ${execution.attempt} of ${execution.agent}`);
    },
    /** Takes `input.ms`, then returns its input; throws when `input.fails`. Stops when its signal aborts. */
    async slow({ input, signal }) {
      const { ms, fails } = input as { readonly ms: number; readonly fails?: boolean };
      await clock.sleep(ms, signal);
      if (fails) throw new Error(`failed after ${ms} ms`);
      return input;
    },
    /** Ends only when its signal aborts. */
    never: ({ signal }) =>
      new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true })),
  };
}

/** The label of an effect: equal in every run of one flow. */
export function labelOf({ input, execution }: Pick<SuiteScriptContext, 'input' | 'execution'>): string {
  const place = typeof input === 'object' && input !== null && 'i' in input ? `#${JSON.stringify(input.i)}` : '';
  return `${execution.agent}${place}@${execution.attempt}`;
}
