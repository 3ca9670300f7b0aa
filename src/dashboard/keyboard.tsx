/** The keys: `/` to the filter, `j` and `k` through a list, Enter opens, Esc goes back, `?` shows the keys. */

import { useEffect, useRef } from 'preact/hooks';
import { Dialog } from './parts/dialog.tsx';

interface Keys {
  onHelp(): void;
  onBack(): void;
}

const KEYS: readonly (readonly [string, string])[] = [
  ['/', 'go to the filter'],
  ['j, k', 'next and previous row'],
  ['Enter', 'open the row'],
  ['Esc', 'leave a field, close a dialog, or go back to the list'],
  ['?', 'show the keys'],
];

export function useKeyboard(keys: Keys): void {
  const current = useRef(keys);
  current.current = keys;
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (document.querySelector('dialog[open]')) return;
      const isField = event.target instanceof HTMLElement && event.target.matches('input, select, textarea');
      if (event.key === 'Escape') {
        if (isField) (event.target as HTMLElement).blur();
        else current.current.onBack();
        return;
      }
      if (!isField && press(event.key, current.current)) event.preventDefault();
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);
}

/** @returns whether the key did something */
function press(key: string, { onHelp }: Keys): boolean {
  if (key === '?') onHelp();
  else if (key === '/') return focusOn(document.querySelector<HTMLElement>('[data-filter]'));
  else if (key === 'j' || key === 'k') return moveRow(key === 'j' ? 1 : -1);
  else return false;
  return true;
}

/** The rows of a list are links, so that Enter and a new tab work as everywhere. */
function moveRow(by: number): boolean {
  const rows = [...document.querySelectorAll<HTMLElement>('[data-row]')];
  const now = rows.indexOf(document.activeElement as HTMLElement);
  return focusOn(rows[Math.max(0, Math.min(rows.length - 1, now + by))] ?? null);
}

function focusOn(element: HTMLElement | null): boolean {
  element?.focus();
  element?.scrollIntoView({ block: 'nearest' });
  return element !== null;
}

export function KeyboardHelp({ onClose }: { onClose(): void }) {
  return (
    <Dialog title="Keys" onClose={onClose}>
      <dl class="facts">
        {KEYS.map(([key, what]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}
