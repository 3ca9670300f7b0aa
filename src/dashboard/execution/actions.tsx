/** What a person can do with an execution: cancel it, pause it, retry it, and copy the command that shows it. */

import { useState } from 'preact/hooks';
import type { Execution } from '../../engine/execution/execution.ts';
import { endedBadly } from '../../engine/execution/execution-record.ts';
import { goTo } from '../address.ts';
import { ApiProblem } from '../api/client.ts';
import { useApp } from '../app-state.ts';
import { CopyButton } from '../parts/copy-button.tsx';
import { Confirm } from '../parts/dialog.tsx';
import { JsonField, readJson } from '../parts/json-field.tsx';

interface ActionsProps {
  readonly execution: Execution<unknown>;
  onChange(): void;
}

export function Actions({ execution, onChange }: ActionsProps) {
  const { can, client, say } = useApp();
  const [asks, setAsks] = useState<'cancel' | 'retry' | 'move'>();
  const { id, finishedAt, retriedBy } = execution;
  const mayChange = can('execute:ensembles');
  const canRetry = endedBadly(execution) && retriedBy === undefined && !execution.dryRun;
  const close = () => setAsks(undefined);
  const changePause = async () => {
    const isPaused = execution.status === 'paused';
    try {
      await client.call(`POST /executions/:id/${isPaused ? 'resume' : 'pause'}`, { id });
      say(isPaused ? 'It continues.' : 'It is paused after its current steps.');
    } catch (error) {
      say(error instanceof Error ? error.message : String(error));
    }
    onChange();
  };
  return (
    <span class="buttons">
      {mayChange && finishedAt === undefined && (
        <button type="button" onClick={() => setAsks('cancel')}>
          Cancel
        </button>
      )}
      {mayChange && can('read:executions') && finishedAt === undefined && (
        <button type="button" onClick={() => setAsks('move')}>
          Move to the latest definition
        </button>
      )}
      {mayChange && finishedAt === undefined && (
        <button type="button" onClick={changePause}>
          {execution.status === 'paused' ? 'Resume' : 'Pause'}
        </button>
      )}
      {mayChange && canRetry && (
        <button type="button" class="primary" onClick={() => setAsks('retry')}>
          Retry
        </button>
      )}
      <CopyButton text={() => `ensemble execution show ${id} --url ${serverUrl()}`}>Copy as command</CopyButton>
      {asks === 'cancel' && <CancelDialog id={id} onDone={onChange} onClose={close} />}
      {asks === 'move' && <MoveDialog id={id} onDone={onChange} onClose={close} />}
      {asks === 'retry' && <RetryDialog execution={execution} onClose={close} />}
    </span>
  );
}

/** The address below which the API of this page is. */
function serverUrl(): string {
  return new URL('.', location.href).href.replace(/\/$/, '');
}

function CancelDialog({ id, onDone, onClose }: { readonly id: string; onDone(): void; onClose(): void }) {
  const { client, say } = useApp();
  const cancel = async () => {
    await client.call('POST /executions/:id/cancel', { id });
    say('The cancellation is stored. It ends as soon as its running step lets it.');
    onDone();
  };
  return (
    <Confirm title="Cancel this execution" action="Cancel it" isDanger onConfirm={cancel} onClose={onClose}>
      <p>
        The running step is aborted, no further step begins, and its children are cancelled. What has been done is not
        undone.
      </p>
    </Confirm>
  );
}

function MoveDialog({ id, onDone, onClose }: { readonly id: string; onDone(): void; onClose(): void }) {
  const { client, say } = useApp();
  const move = async () => {
    const { moved, refusals } = await client.call('POST /moves', { body: { id, to: 'latest' } });
    const [refusal] = refusals;
    if (refusal) throw new ApiProblem(0, { code: 'CONFLICT', message: `${refusal.at}: ${refusal.reason}` });
    say(moved > 0 ? 'It continues with the latest definition.' : 'It has the latest definition already.');
    onDone();
  };
  return (
    <Confirm title="Move to the latest definition" action="Move it" onConfirm={move} onClose={onClose}>
      <p>It is moved only if what is recorded of it replays in that definition. Otherwise nothing changes.</p>
    </Confirm>
  );
}

const MASKED = {
  code: 'MASKED',
  message: 'The input has masked values (***). Write the values in their place, or retry with the input unchanged.',
};

interface RetryDialogProps {
  readonly execution: Execution<unknown>;
  /** The key of a step: it and all that come after it run again. */
  readonly from?: string;
  onClose(): void;
}

export function RetryDialog({ execution, from, onClose }: RetryDialogProps) {
  const { client } = useApp();
  const first = JSON.stringify(execution.input ?? {}, null, 2);
  const [input, setInput] = useState(first);
  const [newKeys, setNewKeys] = useState(false);
  const retry = async () => {
    // What the API masks is not the value, so it must not become the input.
    if (input !== first && input.includes('***')) throw new ApiProblem(0, MASKED);
    const body = {
      ...{ ...(from && { from }), ...(newKeys && { newKeys }) },
      ...(input !== first && { input: readJson(input, 'the input') }),
    };
    const started = await client.call('POST /executions/:id/retry', { id: execution.id, body });
    goTo(['executions', 'id' in started ? started.id : started.executionId]);
  };
  return (
    <Confirm title="Retry this execution" action="Retry it" onConfirm={retry} onClose={onClose}>
      {from ? (
        <p>
          A new execution begins. <code>{from}</code> and all that comes after it run again; the results before it stay.
        </p>
      ) : (
        <p>A new execution begins with the results of the steps that succeeded. Those don't run again.</p>
      )}
      <JsonField label="Input" value={input} rows={8} onValue={setInput} />
      <label class="check">
        <input type="checkbox" checked={newKeys} onChange={() => setNewKeys(!newKeys)} />
        Use new idempotency keys: receivers treat its calls as new ones
      </label>
    </Confirm>
  );
}

interface CompleteDialogProps {
  readonly id: string;
  readonly step: string;
  onClose(): void;
}

/** Gives a step its result by hand. */
export function CompleteDialog({ id, step, onClose }: CompleteDialogProps) {
  const { client, say } = useApp();
  const [output, setOutput] = useState('null');
  const [reason, setReason] = useState('');
  const complete = async () => {
    const body = { key: step, output: readJson(output, 'the output'), ...(reason && { reason }) };
    const after = await client.call('POST /executions/:id/complete', { id, body });
    say('The step has its result.');
    goTo(['executions', 'id' in after ? after.id : after.executionId]);
  };
  return (
    <Confirm title="Give this step a result" action="Store it" onConfirm={complete} onClose={onClose}>
      <p>
        <code>{step}</code> does not run: the flow continues with this result. Of an execution that has ended, a retry
        begins.
      </p>
      <JsonField label="Output" value={output} rows={6} onValue={setOutput} />
      <label>
        Reason
        <input value={reason} maxLength={500} onInput={(event) => setReason(event.currentTarget.value)} />
      </label>
    </Confirm>
  );
}
