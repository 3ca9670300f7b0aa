/** What an execution waits for, and the form that sends it a signal. */

import { useState } from 'preact/hooks';
import type { EnsembleDefinition } from '../../engine/ensemble/ensemble.ts';
import { type Execution, isAtStep, type PendingWait } from '../../engine/execution/execution.ts';
import type { SignalForm } from '../../engine/signal/signal-page.ts';
import { linkTo } from '../address.ts';
import { useApp } from '../app-state.ts';
import { count, oneLine, visible } from '../format.ts';
import { Confirm } from '../parts/dialog.tsx';
import { FormFields, formOf, presets, readFields } from '../parts/form-fields.tsx';
import { Instant } from '../parts/instant.tsx';
import { JsonField, readJson } from '../parts/json-field.tsx';

interface WaitsProps {
  readonly execution: Execution<unknown>;
  onChange(): void;
}

export function Waits({ execution, onChange }: WaitsProps) {
  const { can } = useApp();
  const [signal, setSignal] = useState<string>();
  const { waitingFor, waitingForOmitted = 0 } = execution;
  const dialog = signal !== undefined && (
    <SignalDialog
      id={execution.id}
      name={signal}
      form={execution.forms?.[signal]}
      onSent={onChange}
      onClose={() => setSignal(undefined)}
    />
  );
  // The dialog stays when somebody else has answered: its refusal must be seen.
  if (waitingFor.length === 0) return <>{dialog}</>;
  return (
    <section class="waits">
      <h2>It waits</h2>
      <ul class="lines">
        {waitingFor.map((wait) => (
          <li key={wait.key}>
            <Wait wait={wait} />
            {wait.kind === 'signal' && can('execute:ensembles') && (
              <button type="button" onClick={() => setSignal(wait.name)}>
                Send {oneLine(wait.name ?? '', 30)}
              </button>
            )}
          </li>
        ))}
      </ul>
      {waitingForOmitted > 0 && <p class="hint">And {count(waitingForOmitted, 'more wait')}.</p>}
      {dialog}
    </section>
  );
}

function Wait({ wait }: { readonly wait: PendingWait }) {
  const { kind, name = '', key, executionId, position, starts, since, until } = wait;
  return (
    <span>
      {kind === 'signal' && (
        <>
          for the signal <strong>{oneLine(name, 60)}</strong>
        </>
      )}
      {kind === 'sleep' && 'for an instant'}
      {kind === 'limit' && (
        <>
          for a slot of <strong>{oneLine(name, 60)}</strong>
          {key !== '' && (
            <>
              {' '}
              for <code>{oneLine(key, 60)}</code>
            </>
          )}
          , at position {position},
        </>
      )}
      {(kind === 'debounce' || kind === 'batch') && (
        <>
          for more starts
          {key !== '' && (
            <>
              {' '}
              for <code>{oneLine(key, 60)}</code>
            </>
          )}{' '}
          (<code>{kind}</code>), after {starts},
        </>
      )}
      {kind === 'retry' && (
        <>
          for the next attempt of <strong>{oneLine(name, 60)}</strong>
        </>
      )}
      {kind === 'child' && (
        <>
          for its child <a href={linkTo(['executions', executionId ?? ''])}>{oneLine(name, 60)}</a>
        </>
      )}{' '}
      since <Instant at={since} />
      {until !== undefined && (
        <>
          , at most until <Instant at={until} exact />
        </>
      )}{' '}
      {isAtStep(wait) && <code class="hint">{key}</code>}{' '}
    </span>
  );
}

interface SignalProps {
  readonly id: string;
  readonly name: string;
  readonly form: SignalForm | undefined;
  onSent(): void;
  onClose(): void;
}

function SignalDialog({ id, name, form = {}, onSent, onClose }: SignalProps) {
  const { client, say } = useApp();
  const { title, text, fields } = form;
  const [payload, setPayload] = useState('null');
  const asked = fields && formOf(fields as EnsembleDefinition['inputs']);
  const [texts, setTexts] = useState(() => (asked ? presets(asked) : {}));
  const send = async () => {
    await client.call('POST /executions/:id/signals/:signal', {
      id,
      signal: name,
      body: asked ? readFields(asked, texts) : readJson(payload, 'the payload'),
    });
    say('The signal is stored.');
    onSent();
  };
  return (
    <Confirm
      title={title === undefined ? `Send the signal ${name}` : visible(title)}
      action="Send it"
      onConfirm={send}
      onClose={onClose}
    >
      {text !== undefined && <p>{visible(text)}</p>}
      {asked ? (
        <FormFields form={asked} texts={texts} onTexts={setTexts} />
      ) : (
        <JsonField label="Payload, as JSON" value={payload} onValue={setPayload} />
      )}
      <p class="hint">
        The <code>wait</code> for this name takes it once. It can't be taken back.
      </p>
    </Confirm>
  );
}
