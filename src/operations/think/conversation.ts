/** One conversation with a model: calls of the model and of tools, until the answer is complete. */

import { OrchestratorError } from '../../engine/base/errors.ts';
import type { Json } from '../../engine/base/json/json.ts';
import type { ValueCheck } from '../../engine/json-schema/rule.ts';
import type { ModelMessage } from '../../engine/operation/model.port.ts';
import { callModel, type ModelCalls, type StoredAnswer } from './call-model.ts';
import { callTools, type ToolCalls } from './call-tools.ts';
import { readObject } from './structured-answer.ts';

/** What all conversations of one attempt share. */
export interface Talk extends ModelCalls, ToolCalls {
  readonly prompt: string;
  /** The check of `schema`. */
  readonly check: ValueCheck | undefined;
}

/** How far an attempt has walked over the parts. Every attempt meets the stored parts in the same order. */
export interface Walk {
  /** The answers so far, of all conversations. */
  readonly answers: StoredAnswer[];
  /** The number of parts of kind `tool` so far. */
  toolParts: number;
}

/** How a conversation ended. */
export type Ending =
  | { readonly answer: StoredAnswer; readonly object?: Json }
  /** In vain: another conversation may succeed. `attempt`: the one that got the last answer. */
  | { readonly failed: OrchestratorError; readonly attempt: string };

const MAX_STEPS = 10;
/** A sane answer asks for a few calls. */
const MAX_CALLS = 64;

/** @throws what calls of models and tools throw */
export async function converse(talk: Talk, walk: Walk): Promise<Ending> {
  const { prompt, check } = talk;
  const messages: ModelMessage[] = [{ role: 'user', text: prompt }];
  const maxSteps = talk.context.config.maxSteps ?? MAX_STEPS;
  let repairs = 0;
  for (let steps = 1; ; steps++) {
    const answer = await callModel(talk, walk.answers.length + 1, messages);
    walk.answers.push(answer);
    messages.push({ role: 'assistant', answer });
    const fail = (reason: string, what: string): Ending => ({
      failed: failure(talk, reason, what, true),
      attempt: answer.attempt,
    });
    const { toolCalls } = answer;
    if (toolCalls.length > 0) {
      if (talk.tools.length === 0) return fail('tool-calls', 'called a tool, but the agent has none');
      if (toolCalls.length > MAX_CALLS)
        return fail(
          'tool-calls',
          `asked for ${toolCalls.length} calls of tools at once; at most ${MAX_CALLS} are made`,
        );
      if (steps >= maxSteps + repairs) return { failed: tooManySteps(talk, maxSteps), attempt: answer.attempt };
      const first = walk.toolParts + 1;
      walk.toolParts += toolCalls.length;
      messages.push(...(await callTools(talk, toolCalls, first)));
      continue;
    }
    if (!check) return { answer };
    const read = readObject(answer.text, check);
    if ('value' in read) return { answer, object: read.value };
    const cut = cutFailure(answer, talk);
    if (cut) return { failed: cut, attempt: answer.attempt };
    if (repairs > 0)
      return fail('schema', `gave two answers that do not fit \`schema\`. The last one: ${read.problem}`);
    repairs += 1;
    messages.push({ role: 'user', text: repairText(read.problem) });
  }
}

function repairText(problem: string): string {
  return `Your answer can't be used: ${problem}. Answer again, with JSON that fits the schema and nothing else.`;
}

function failure({ context }: Talk, reason: string, what: string, retryable: boolean): OrchestratorError {
  const message = `model \`${context.config.model}\` ${what}`;
  return new OrchestratorError('AGENT_FAILED', message, { details: { reason }, retryable });
}

function tooManySteps(talk: Talk, maxSteps: number): OrchestratorError {
  const what = `still asks for tools after ${maxSteps} calls; raise \`maxSteps\`, or let the prompt say when to stop`;
  return failure(talk, 'max-steps', what, false);
}

/** The failure of an answer that was cut off or held back, which is not repaired by asking again. */
function cutFailure({ finishReason }: StoredAnswer, talk: Talk): OrchestratorError | undefined {
  if (finishReason === 'length')
    return failure(talk, 'length', 'was cut off before its answer fitted `schema`; raise `maxTokens`', false);
  if (finishReason === 'content-filter')
    return failure(
      talk,
      'content-filter',
      'refused, or a filter held its answer back, so nothing fits `schema`',
      false,
    );
  return undefined;
}
