/** A button that copies a text. */

import { useApp } from '../app-state.ts';

interface CopyProps {
  /** Called when the button is pressed. */
  text(): string;
  readonly children: string;
}

export function CopyButton({ text, children }: CopyProps) {
  const { say } = useApp();
  const copy = () =>
    navigator.clipboard.writeText(text()).then(
      () => say('Copied.'),
      () => say('The browser does not allow to copy here. Select the text instead.'),
    );
  return (
    <button type="button" class="quiet" onClick={copy}>
      {children}
    </button>
  );
}
