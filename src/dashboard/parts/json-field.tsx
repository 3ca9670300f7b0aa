/** A field for a JSON value. */

import { ApiProblem } from '../api/client.ts';

interface JsonFieldProps {
  readonly label: string;
  readonly value: string;
  readonly rows?: number;
  onValue(value: string): void;
}

export function JsonField({ label, value, rows = 6, onValue }: JsonFieldProps) {
  return (
    <label class="wide">
      {label}
      <textarea
        class="mono"
        spellcheck={false}
        rows={rows}
        value={value}
        onInput={({ currentTarget }) => onValue(currentTarget.value)}
      />
    </label>
  );
}

/** @throws ApiProblem for a text that is not JSON */
export function readJson(text: string, what: string): unknown {
  try {
    return JSON.parse(text);
  } catch (thrown) {
    const message = `${what} is not JSON: ${thrown instanceof Error ? thrown.message : thrown}`;
    throw new ApiProblem(0, { code: 'NOT_JSON', message });
  }
}
