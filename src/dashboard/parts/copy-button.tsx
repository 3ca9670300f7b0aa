/** A button that copies a text. */

import { useApp } from '../app-state.ts';

interface CopyProps {
  /** Called when the button is pressed. */
  text(): string;
  readonly children: string;
}

export function CopyButton({ text, children }: CopyProps) {
  const { say } = useApp();
  // Without https, a browser has no clipboard.
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text());
      say('Copied.');
    } catch {
      say(`The browser does not allow to copy here: ${text().slice(0, 300)}`);
    }
  };
  return (
    <button type="button" class="quiet" onClick={copy}>
      {children}
    </button>
  );
}
