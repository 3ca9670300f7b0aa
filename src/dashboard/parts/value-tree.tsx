/** A JSON value as a tree that opens on demand, so that a large one costs nothing before a person looks at it. */

import { useMemo, useState } from 'preact/hooks';
import { count, visible } from '../format.ts';
import { CopyButton } from './copy-button.tsx';

/** Of a list or an object, so many entries are shown at a time. */
const ENTRIES = 100;
/** Of a text, so many characters. */
const CHARACTERS = 400;
const MORE_CHARACTERS = 20_000;
/** Values with less text are open at first. */
const OPEN_CHARACTERS = 600;

interface ValueProps {
  readonly value: unknown;
  readonly label?: string;
  /** How many levels are open at first. */
  readonly open?: number;
}

export function Value({ value, label }: { readonly value: unknown; readonly label: string }) {
  const isShort = useMemo(() => JSON.stringify(value ?? null).length <= OPEN_CHARACTERS, [value]);
  return (
    <section class="value" aria-label={label}>
      <Node value={value} open={isShort ? 9 : 1} />
      <CopyButton text={() => JSON.stringify(value ?? null, null, 2)}>Copy JSON</CopyButton>
    </section>
  );
}

function Node({ value, label, open = 0 }: ValueProps) {
  const name = label === undefined ? '' : `${visible(label)}: `;
  if (typeof value !== 'object' || value === null)
    return (
      <div class="leaf">
        <span class="key">{name}</span>
        {typeof value === 'string' ? <Text text={value} /> : <span class="atom">{String(value)}</span>}
      </div>
    );
  return <Branch value={value} name={name} open={open} />;
}

function Branch({ value, name, open }: { readonly value: object; readonly name: string; readonly open: number }) {
  const [isOpen, setOpen] = useState(open > 0);
  const [shown, setShown] = useState(ENTRIES);
  const isList = Array.isArray(value);
  const keys = isList ? undefined : Object.keys(value);
  const size = isList ? value.length : (keys as string[]).length;
  const entries = (keys?.slice(0, shown) ?? Array.from({ length: Math.min(size, shown) }, (_, i) => String(i))).map(
    (key) => [key, (value as Record<string, unknown>)[key]] as const,
  );
  return (
    <div class="branch">
      <button type="button" class="fold" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        <span class="key">{name}</span>
        {isList ? `[ ${count(size, 'item')} ]` : `{ ${count(size, 'field')} }`}
      </button>
      {isOpen && (
        <div class="inner">
          {entries.map(([key, inner]) => (
            <Node key={key} label={key} value={inner} open={open - 1} />
          ))}
          {size > shown && (
            <button type="button" class="quiet" onClick={() => setShown(shown + ENTRIES * 10)}>
              Show more of {count(size, isList ? 'item' : 'field')}
            </button>
          )}
        </div>
      )}
    </div>
  );
}

function Text({ text }: { readonly text: string }) {
  const [shown, setShown] = useState(CHARACTERS);
  return (
    <span class="text">
      "{visible(text.slice(0, shown))}"
      {text.length > shown && (
        <button type="button" class="quiet" onClick={() => setShown(shown + MORE_CHARACTERS)}>
          ... show more of {count(text.length, 'character')}
        </button>
      )}
    </span>
  );
}
