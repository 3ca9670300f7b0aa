/** Adds up what calls of models used. */

import type { TokenUsage } from '../execution/execution.ts';

/** @param total - undefined before the first call */
export function addUsage(total: TokenUsage | undefined, used: TokenUsage): TokenUsage {
  const cost = total?.cost === undefined ? used.cost : total.cost + (used.cost ?? 0);
  return {
    inputTokens: (total?.inputTokens ?? 0) + used.inputTokens,
    outputTokens: (total?.outputTokens ?? 0) + used.outputTokens,
    ...(cost !== undefined && { cost }),
  };
}
