/**
 * The providers of the AI SDK under test. `AI_PROVIDERS` names a module that exports other versions of them: `npm run runtimes` runs
 * these tests with the versions that need a newer Node.js.
 */

import type { createAnthropic } from '@ai-sdk/anthropic';
import type { createOpenAI } from '@ai-sdk/openai';
import type { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import type { createWorkersAI } from 'workers-ai-provider';

interface Providers {
  readonly createAnthropic: typeof createAnthropic;
  readonly createOpenAI: typeof createOpenAI;
  readonly createOpenAICompatible: typeof createOpenAICompatible;
  readonly createWorkersAI: typeof createWorkersAI;
}

async function load(): Promise<Providers> {
  const { AI_PROVIDERS: path } = process.env;
  if (path !== undefined) return import(/* @vite-ignore */ path);
  return {
    ...(await import('@ai-sdk/anthropic')),
    ...(await import('@ai-sdk/openai')),
    ...(await import('@ai-sdk/openai-compatible')),
    ...(await import('workers-ai-provider')),
  };
}

export const providers = await load();
