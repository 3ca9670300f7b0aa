/** Five trivial steps that pass their results on in 15 expressions. Two of the steps have a condition. */

import { importLibrary } from '../library.mjs';

const ENSEMBLE = `
name: bench
agents:
  - name: first
    operation: code
    config: { script: increment }
    input: { x: "\${input.x}", who: "\${upper(input.who)}" }
  - name: second
    operation: code
    config: { script: increment }
    input: { x: "\${first.output.x}", who: "\${first.output.who}", text: "Hello \${first.output.who}, number \${first.output.x + 1}" }
  - name: third
    operation: code
    config: { script: increment }
    condition: \${second.output.x > 1 && second.success}
    input: { x: "\${second.output.x}", who: "\${second.output.who ?? 'nobody'}" }
  - name: fourth
    operation: code
    config: { script: increment }
    condition: \${third.output.x == 3}
    input: { x: "\${third.output.x}", even: "\${third.output.x % 2 == 0 ? 'even' : 'odd'}" }
  - name: fifth
    operation: code
    config: { script: increment }
    input: { x: "\${fourth.output.x}", who: "\${lower(third.output.who)}" }
flow: [{ agent: first }, { agent: second }, { agent: third }, { agent: fourth }, { agent: fifth }]
outputs:
  x: \${fifth.output.x}
  who: \${fifth.output.who}
  sum: \${first.output.x + second.output.x + third.output.x}
`;

export async function setup() {
  const { createOrchestrator } = await importLibrary();
  const orchestrator = createOrchestrator({
    ensembles: [ENSEMBLE],
    scripts: { increment: async ({ input }) => ({ x: input.x + 1, who: input.who }) },
  });
  return {
    async run() {
      const { status, output } = await orchestrator.execute('bench', { x: 0, who: 'Ada' });
      if (status !== 'completed' || output.x !== 5) throw new Error(`the status of the run is ${status}`);
    },
  };
}
