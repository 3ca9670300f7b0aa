/** LangGraph: a graph of five chained nodes, without a checkpointer. */

import { Annotation, END, START, StateGraph } from '@langchain/langgraph';

export function setup() {
  let graph = new StateGraph(Annotation.Root({ x: Annotation() }));
  for (let i = 0; i < 5; i++) graph = graph.addNode(`s${i}`, async ({ x }) => ({ x: x + 1 }));
  graph = graph.addEdge(START, 's0');
  for (let i = 0; i < 4; i++) graph = graph.addEdge(`s${i}`, `s${i + 1}`);
  const app = graph.addEdge('s4', END).compile();
  return {
    async run() {
      const { x } = await app.invoke({ x: 0 });
      if (x !== 5) throw new Error(`expected 5, not ${x}`);
    },
  };
}
