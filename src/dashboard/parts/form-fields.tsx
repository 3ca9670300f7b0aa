/** The inputs of a form that a JSON Schema describes: one for each of its properties. */

import type { JsonObject } from '../../engine/base/json/json.ts';
import { isAskedPlainly, readField } from '../../engine/signal/form-field.ts';

/** What was put in, by the name of the field. A box that is not checked is not there. */
export type FieldTexts = Readonly<Record<string, string>>;

interface FormFieldsProps {
  /** A JSON Schema of type `object`. */
  readonly fields: JsonObject;
  readonly texts: FieldTexts;
  onTexts(texts: FieldTexts): void;
}

export function FormFields({ fields, texts, onTexts }: FormFieldsProps) {
  const required = (fields.required ?? []) as readonly string[];
  return (
    <>
      {propertiesOf(fields).map(([name, field]) => (
        <label key={name} class={isAskedPlainly(field) ? undefined : 'wide'}>
          {String(field.title ?? name)}
          <FieldInput
            field={field}
            isRequired={required.includes(name)}
            text={texts[name] ?? ''}
            onText={(text) => onTexts({ ...texts, [name]: text })}
          />
          {field.description !== undefined && <small class="hint">{String(field.description)}</small>}
        </label>
      ))}
    </>
  );
}

interface FieldInputProps {
  readonly field: JsonObject;
  readonly isRequired: boolean;
  readonly text: string;
  onText(text: string): void;
}

function FieldInput({ field, isRequired, text, onText }: FieldInputProps) {
  const { type, enum: allowed } = field;
  if (Array.isArray(allowed))
    return (
      <select required={isRequired} value={text} onChange={({ currentTarget }) => onText(currentTarget.value)}>
        {['', ...allowed.map(String)].map((one) => (
          <option key={one} value={one}>
            {one}
          </option>
        ))}
      </select>
    );
  if (type === 'boolean')
    return (
      <input
        type="checkbox"
        checked={text === 'true'}
        onChange={({ currentTarget }) => onText(String(currentTarget.checked))}
      />
    );
  if (!isAskedPlainly(field))
    return (
      <textarea
        class="mono"
        spellcheck={false}
        rows={4}
        required={isRequired}
        value={text}
        onInput={({ currentTarget }) => onText(currentTarget.value)}
      />
    );
  return (
    <input
      inputMode={type === 'string' ? undefined : 'decimal'}
      required={isRequired}
      value={text}
      onInput={({ currentTarget }) => onText(currentTarget.value)}
    />
  );
}

/** The texts before somebody changes them: the defaults of the fields. */
export function defaultTexts(fields: JsonObject): FieldTexts {
  return Object.fromEntries(
    propertiesOf(fields).flatMap(([name, { default: preset }]) => {
      if (preset === undefined) return [];
      return [[name, typeof preset === 'object' ? JSON.stringify(preset) : String(preset)]];
    }),
  );
}

/** The value of the form. */
export function readFields(fields: JsonObject, texts: FieldTexts): object {
  return Object.fromEntries(
    propertiesOf(fields).flatMap(([name, field]) => {
      const value = readField(field, texts[name]);
      return value === undefined ? [] : [[name, value]];
    }),
  );
}

function propertiesOf({ properties }: JsonObject): [string, JsonObject][] {
  return Object.entries((properties ?? {}) as Readonly<Record<string, JsonObject>>);
}
