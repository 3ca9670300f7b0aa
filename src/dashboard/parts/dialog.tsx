/** A dialog over the page, and the question before a change. */

import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { ApiProblem } from '../api/client.ts';
import { toProblem } from '../api/use-data.ts';
import { Failure } from './failure.tsx';

interface DialogProps {
  readonly title: string;
  onClose(): void;
  readonly children: ComponentChildren;
}

export function Dialog({ title, onClose, children }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} onClose={onClose} aria-label={title}>
      <h2>{title}</h2>
      {children}
      <button type="button" class="quiet close" aria-label="Close" onClick={() => dialog.current?.close()}>
        ×
      </button>
    </dialog>
  );
}

interface ConfirmProps {
  readonly title: string;
  /** What the button says. */
  readonly action: string;
  readonly isDanger?: boolean;
  /** What happens. The dialog stays open, with the reason, if it fails. */
  onConfirm(): Promise<unknown>;
  /** Called after a success. Default: the dialog closes. */
  onDone?(): void;
  onClose(): void;
  readonly children?: ComponentChildren;
}

export function Confirm({ title, action, isDanger, onConfirm, onClose, onDone = onClose, children }: ConfirmProps) {
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState<ApiProblem>();
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setProblem(undefined);
    try {
      await onConfirm();
      onDone();
    } catch (thrown) {
      setProblem(toProblem(thrown));
      setBusy(false);
    }
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <form onSubmit={submit}>
        {children}
        {problem && <Failure problem={problem} />}
        <p class="buttons">
          <button type="submit" class={isDanger ? 'danger' : 'primary'} disabled={isBusy}>
            {isBusy ? 'Please wait...' : action}
          </button>
          <button type="button" onClick={onClose}>
            Close
          </button>
        </p>
      </form>
    </Dialog>
  );
}
