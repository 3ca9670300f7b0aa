/** Stubs of scripts: a test replaces a registered script by name, and reads the calls of the stub. */

import type { JsonObject } from '../engine/base/json/json.ts';
import { suggestName } from '../engine/base/suggest-name.ts';
import type { ExecutionInfo } from '../engine/operation/operation.port.ts';
import type { OrchestratorOptions } from '../orchestrator/options/options.ts';

export type Script = NonNullable<OrchestratorOptions['scripts']>[string];

/** A call of a stub. */
export interface ScriptCall {
  // biome-ignore lint/suspicious/noExplicitAny: as for the context of a script
  readonly input: any;
  readonly config: JsonObject;
  readonly execution: ExecutionInfo;
}

export interface ScriptStub {
  /** All calls in their order. */
  readonly calls: readonly ScriptCall[];
  /** Brings back what the stub replaced. */
  restore(): void;
}

export interface StubbedScripts {
  /** The scripts under their names. Each call goes to the newest stub of the script, or to the script. */
  readonly scripts: Readonly<Record<string, Script>>;
  /** @throws TypeError for a name that is not registered */
  stub(name: string, script: Script): ScriptStub;
}

/** @param stubs - the stubs by name, the newest last. Several processes may share them */
export function stubbedScripts(
  scripts: Readonly<Record<string, Script>>,
  stubs: Map<string, readonly Script[]>,
): StubbedScripts {
  const current = (name: string, script: Script) => stubs.get(name)?.at(-1) ?? script;
  return {
    scripts: Object.fromEntries(
      // The schemas of a script check its stubs too.
      Object.entries(scripts).map(([name, script]) => [
        name,
        Object.assign((context: Parameters<Script>[0]) => current(name, script)(context), { ...script }),
      ]),
    ),
    stub(name, script) {
      if (!Object.hasOwn(scripts, name)) throw unknownScript(name, Object.keys(scripts));
      if (typeof script !== 'function') throw new TypeError('stubScript: the stub must be a function');
      const calls: ScriptCall[] = [];
      const recorded: Script = (context) => {
        const { input, config, execution } = context;
        calls.push({ input, config, execution });
        return script(context);
      };
      stubs.set(name, [...(stubs.get(name) ?? []), recorded]);
      return {
        calls,
        restore: () =>
          void stubs.set(
            name,
            (stubs.get(name) ?? []).filter((other) => other !== recorded),
          ),
      };
    },
  };
}

function unknownScript(name: string, known: readonly string[]): TypeError {
  const near = suggestName(name, known);
  const list = known.length === 0 ? 'none is registered' : `registered: ${known.slice(0, 10).join(', ')}`;
  return new TypeError(
    `stubScript: there is no script \`${name}\` (${list})${near === undefined ? '' : `; did you mean \`${near}\`?`}`,
  );
}
