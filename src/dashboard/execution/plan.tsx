/** The plan of a dry run: each step with what it would get, and what it gave. */

import type { PlannedStep } from '../../engine/execution/execution.ts';
import { formatDuration, oneLine } from '../format.ts';
import { Table } from '../parts/table.tsx';
import { Value } from '../parts/value-tree.tsx';
import { ErrorOf } from './error-of.tsx';

const ORIGIN = { types: 'by its types', execution: 'as recorded', operation: 'it ran' };

export function Plan({ steps }: { readonly steps: readonly PlannedStep[] }) {
  if (steps.length === 0) return <p class="empty">It would do nothing.</p>;
  return (
    <>
      <p class="hint">
        Nothing of this has happened. What steps give is made up from their types, unless it says otherwise.
      </p>
      <Table heads={['Step', 'After', 'Gets', 'Gives']}>
        {steps.map((step) => (
          <PlanRow key={`${step.within ?? ''} ${step.key} ${step.kind}`} step={step} />
        ))}
      </Table>
    </>
  );
}

function PlanRow({ step }: { readonly step: PlannedStep }) {
  const { key, within, operation, at, input, config, output, error, from, unknown, omitted } = step;
  return (
    <tr>
      <td>
        {titleOf(step)} {operation && <span class="hint">{operation}</span>}
        <br />
        <code>{within === undefined ? key : `${within}/${key}`}</code>
      </td>
      <td class="number">{at > 0 ? formatDuration(at) : ''}</td>
      <td>
        {input !== undefined && <Value value={input} label="Input" />}
        {config !== undefined && <Value value={config} label="Config" />}
        {omitted && <span class="hint">The plan is too large to keep its values.</span>}
      </td>
      <td>
        {error && <ErrorOf error={error} />}
        {output !== undefined && <Value value={output} label="Output" />}
        {from && <span class="hint">{ORIGIN[from]}</span>}
        {unknown && <p class="hint">Not declared, so null: {unknown.join(', ')}</p>}
      </td>
    </tr>
  );
}

function titleOf({ kind, name, skipped, until }: PlannedStep): string {
  if (skipped) return `${oneLine(name || kind, 60)} is skipped`;
  if (kind === 'sleep') return `sleeps until ${new Date(until ?? 0).toISOString()}`;
  if (kind === 'while') return 'the loop still holds with made-up results, and is left';
  return kind === 'agent' ? name : kind === 'wait' ? `waits for ${name}` : `ensemble ${name}`;
}
