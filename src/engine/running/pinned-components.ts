/** The versions of components to which the references of an execution led. An execution keeps them through resumes. */

import type { Json } from '../base/json/json.ts';
import type { UsedComponent } from '../component/component.ts';
import { toNote } from '../ensemble/step-kind.ts';
import type { StepRecord } from '../execution/stored-execution.ts';

const KEY = /^run\.component\[(.*)\]$/s;

export class PinnedComponents {
  #byReference: Map<string, UsedComponent> | undefined;
  #unstored: { readonly reference: string; readonly component: UsedComponent; readonly at: number }[] | undefined;

  /** @param note - any stored note */
  add({ key, output }: StepRecord): void {
    const reference = key.startsWith('run.component[') ? KEY.exec(key)?.[1] : undefined;
    if (reference === undefined) return;
    this.#byReference ??= new Map();
    this.#byReference.set(reference, output as unknown as UsedComponent);
  }

  /** @param at - Unix ms */
  set(reference: string, component: UsedComponent, at: number): void {
    this.#byReference ??= new Map();
    this.#byReference.set(reference, component);
    this.#unstored ??= [];
    this.#unstored.push({ reference, component, at });
  }

  /** Whether the next commit has to store notes. */
  get hasUnstored(): boolean {
    return this.#unstored !== undefined;
  }

  /** Whether one of them was chosen by a split. */
  get hasUnstoredChoice(): boolean {
    return this.#unstored?.some(({ component }) => component.split !== undefined) ?? false;
  }

  /** The notes of what was set since the last call. At the end of an execution, nobody needs them: its record has the same. */
  takeNotes(): StepRecord[] {
    const notes = (this.#unstored ?? []).map(({ reference, component, at }) =>
      toNote(`run.component[${reference}]`, { at, output: component as unknown as Json }),
    );
    this.#unstored = undefined;
    return notes;
  }

  get(reference: string): UsedComponent | undefined {
    return this.#byReference?.get(reference);
  }

  /** In the order of their first use. Undefined: none was used. */
  get all(): readonly UsedComponent[] | undefined {
    return this.#byReference && [...this.#byReference.values()];
  }
}
