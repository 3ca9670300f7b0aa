/** The error of an execution or a step, with what the caller may see of its reason. */

import type { ExecutionError } from '../../engine/execution/execution.ts';
import { linkTo } from '../address.ts';
import { visible } from '../format.ts';
import { Value } from '../parts/value-tree.tsx';

export function ErrorOf({ error }: { readonly error: ExecutionError }) {
  const { code, message, agent, details, stack, cause } = error;
  return (
    <div class="failure">
      <p>
        <strong>{code}</strong>
        {agent && (
          <>
            {' '}
            in agent <code>{agent}</code>
          </>
        )}
      </p>
      <pre class="wrapped">{visible(message)}</pre>
      {typeof details?.executionId === 'string' && (
        <p>
          The reason is in its child <a href={linkTo(['executions', details.executionId])}>{details.executionId}</a>
        </p>
      )}
      {details && <Value value={details} label="Details" />}
      {cause && <Value value={cause} label="Cause" />}
      {stack && (
        <details>
          <summary>Stack</summary>
          <pre>{visible(stack)}</pre>
        </details>
      )}
    </div>
  );
}
