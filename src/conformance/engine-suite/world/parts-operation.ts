/** The operation of the engine suite whose attempts have parts. Each part, and each attempt, is recorded as an effect. */

import type { Json } from '../../../engine/base/json/json.ts';
import type { AnyOperation, OperationContext, OperationPart } from '../../../engine/operation/operation.port.ts';
import type { ProcessControl } from '../../../testing-kit/processes/process-control.ts';
import type { History } from './history.ts';
import { labelOf } from './scripts.ts';

/** A part that the operation `parts` runs. */
interface SuitePart extends Omit<OperationPart, 'name'> {
  /** How long it takes. Default: it ends at once. */
  readonly ms?: number;
  /** What it returns. */
  readonly gives: Json;
}

interface PartsConfig {
  readonly parts: readonly SuitePart[];
  /** Whether all parts run at once, and not one after the other. */
  readonly atOnce?: boolean;
  /** Attempts before this one fail after their parts. */
  readonly passesAt?: number;
}

/** The operation `parts`: runs the parts of its config, and returns what they gave. @param process - the number of its process */
export function partsOperation(control: ProcessControl, history: History, process: number): AnyOperation {
  const effect = (context: OperationContext<PartsConfig>, part?: SuitePart) => {
    const { input, idempotencyKey, execution } = context;
    const of = part ? `.${part.kind}[${part.number}]` : '';
    const label = labelOf({
      input,
      execution: part ? { ...execution, agent: execution.agent + of, attempt: 1 } : execution,
    });
    const key = idempotencyKey + of;
    history.addEffect({ process, executionId: execution.id, label, idempotencyKey: key, input });
  };
  return {
    name: 'parts',
    run: control.script(async (context: OperationContext<PartsConfig>) => {
      const { config, execution, signal } = context;
      effect(context);
      const runPart = (part: SuitePart) =>
        context.step(
          { kind: part.kind, number: part.number, name: `the ${part.kind}` },
          control.script(async () => {
            effect(context, part);
            if (part.ms !== undefined) await control.clock.sleep(part.ms, signal);
            return part.gives;
          }),
        );
      const given: Json[] = [];
      if (config.atOnce) given.push(...(await Promise.all(config.parts.map(runPart))));
      else for (const part of config.parts) given.push(await runPart(part));
      if (execution.attempt < (config.passesAt ?? 1)) throw new Error(`attempt ${execution.attempt}`);
      return given;
    }),
  };
}
