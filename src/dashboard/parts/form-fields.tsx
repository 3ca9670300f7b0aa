/** The inputs of a form: one for each input of an ensemble, or for each field of a signal. */

import type { EnsembleDefinition } from '../../engine/ensemble/ensemble.ts';
import { visible } from '../format.ts';
import { JsonField, readJson } from './json-field.tsx';

/** What was put in, by the name of the field. */
type FieldTexts = Readonly<Record<string, string>>;

interface Field {
  /** The label. Default: the name. */
  readonly title?: string | undefined;
  readonly type?: string | undefined;
  readonly enum?: readonly unknown[] | undefined;
  readonly description?: string | undefined;
  readonly default?: unknown;
}

export interface Form {
  readonly fields: readonly (readonly [name: string, field: Field])[];
  readonly required: ReadonlySet<string>;
}

/** The form of `inputs` or of a signal: a field for each name, or for each property of a JSON Schema. */
export function formOf(inputs: EnsembleDefinition['inputs']): Form {
  const given = (inputs ?? {}) as Readonly<Record<string, unknown>>;
  if (typeof given.type === 'string') {
    const { properties = {}, required = [] } = given as { properties?: Record<string, Field>; required?: string[] };
    return { fields: Object.entries(properties), required: new Set(required) };
  }
  const fields = Object.entries(given) as [string, Field & { readonly required?: boolean }][];
  return { fields, required: new Set(fields.flatMap(([name, { required }]) => (required ? [name] : []))) };
}

interface FormProps {
  readonly form: Form;
  readonly texts: FieldTexts;
  onTexts(texts: FieldTexts): void;
}

export function FormFields({ form: { fields, required }, texts, onTexts }: FormProps) {
  return (
    <>
      {fields.map(([name, field]) => (
        <InputField
          key={name}
          name={name}
          field={field}
          isRequired={required.has(name)}
          value={texts[name] ?? ''}
          onValue={(text) => onTexts({ ...texts, [name]: text })}
        />
      ))}
    </>
  );
}

/** The texts before somebody changes them: the defaults of the fields. */
export function presets({ fields }: Form): FieldTexts {
  return Object.fromEntries(
    fields.flatMap(([name, field]) => (field.default === undefined ? [] : [[name, asText(field.default)]])),
  );
}

function asText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** An empty field is left out. @throws ApiProblem for a value that is not JSON */
export function readFields({ fields }: Form, texts: FieldTexts): Record<string, unknown> {
  return Object.fromEntries(
    fields.flatMap(([name, field]) => {
      const text = texts[name] ?? '';
      if (text === '') return [];
      if (field.enum) return [[name, field.enum.find((one) => asText(one) === text)]];
      return [[name, field.type === 'string' ? text : readJson(text, `\`${name}\``)]];
    }),
  );
}

interface FieldProps {
  readonly name: string;
  readonly field: Field;
  readonly isRequired: boolean;
  readonly value: string;
  onValue(value: string): void;
}

function InputField({ name, field, isRequired, value, onValue }: FieldProps) {
  const { type, title = name, description } = field;
  const label = `${title}${isRequired ? ' (required)' : ''}`;
  const choices = field.enum?.map(asText) ?? (type === 'boolean' ? ['true', 'false'] : undefined);
  const isJson = !choices && !['string', 'number', 'integer'].includes(String(type));
  const common = {
    required: isRequired,
    value,
    onInput: ({ currentTarget }: { readonly currentTarget: { readonly value: string } }) =>
      onValue(currentTarget.value),
  };
  return (
    <>
      {isJson && <JsonField label={`${label}, as JSON`} rows={3} value={value} onValue={onValue} />}
      {choices && (
        <label>
          {label}
          <select {...common}>
            <option value="">{isRequired ? 'choose' : 'none'}</option>
            {choices.map((choice) => (
              <option key={choice} value={choice}>
                {choice}
              </option>
            ))}
          </select>
        </label>
      )}
      {!isJson && !choices && type === 'string' && (
        <label>
          {label}
          <input {...common} />
        </label>
      )}
      {!isJson && !choices && type !== 'string' && (
        <label>
          {label}
          <input type="number" step={type === 'integer' ? 1 : 'any'} {...common} />
        </label>
      )}
      {description && <p class="hint">{visible(description)}</p>}
    </>
  );
}
