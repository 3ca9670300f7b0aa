/** A model that repeats its prompt. */
const echo = {
  generate: async ({ model, messages }) => ({
    ...{ text: messages[0].text, toolCalls: [], finishReason: 'stop', model },
    usage: { inputTokens: 1, outputTokens: 1 },
  }),
};

export default { env: ['STAGE'], models: { echo } };
