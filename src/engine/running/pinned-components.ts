/** The versions of components to which the references of an execution led. An execution keeps them through resumes. */

import type { UsedComponent } from '../model/component.ts';
import { toNote } from '../model/step-kind.ts';
import type { StepRecord } from '../model/stored-execution.ts';

const KEY = /^run\.component\[(.*)\]$/s;

export class PinnedComponents {
  #byReference: Map<string, UsedComponent> | undefined;

  /** @param note - any stored note */
  add({ key, output }: StepRecord): void {
    const reference = key.startsWith('run.component[') ? KEY.exec(key)?.[1] : undefined;
    if (reference === undefined) return;
    this.#byReference ??= new Map();
    this.#byReference.set(reference, output as unknown as UsedComponent);
  }

  get(reference: string): UsedComponent | undefined {
    return this.#byReference?.get(reference);
  }

  /** In the order of their first use. Undefined: none was used. */
  get all(): readonly UsedComponent[] | undefined {
    return this.#byReference && [...this.#byReference.values()];
  }
}

/** The note that stores to which version a reference led. @param at - Unix ms */
export function toPin(reference: string, component: UsedComponent, at: number): StepRecord {
  return toNote(`run.component[${reference}]`, { at, output: { ...component } });
}
