/** The providers of the AI SDK in the versions of this folder, for the tests in `test/ai`. */

export { createAnthropic } from '@ai-sdk/anthropic';
export { createOpenAI } from '@ai-sdk/openai';
export { createOpenAICompatible } from '@ai-sdk/openai-compatible';
export { createWorkersAI } from 'workers-ai-provider';
