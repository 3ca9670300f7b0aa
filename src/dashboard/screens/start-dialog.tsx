/** Starts an ensemble with a form that is made from its `inputs`. */

import { useState } from 'preact/hooks';
import type { EnsembleDefinition } from '../../engine/ensemble/ensemble.ts';
import { goTo } from '../address.ts';
import { useApp } from '../app-state.ts';
import { visible } from '../format.ts';
import { Confirm } from '../parts/dialog.tsx';
import { JsonField, readJson } from '../parts/json-field.tsx';

interface StartProps {
  readonly name: string;
  readonly inputs: EnsembleDefinition['inputs'];
  onClose(): void;
}

interface Field {
  readonly type?: string | undefined;
  readonly enum?: readonly unknown[] | undefined;
  readonly description?: string | undefined;
  readonly default?: unknown;
}

interface FieldList {
  readonly fields: readonly (readonly [name: string, field: Field])[];
  readonly required: ReadonlySet<string>;
}

/** The fields of `inputs`, in both of its forms: a field for each name, or a JSON Schema. */
function fieldsOf(inputs: EnsembleDefinition['inputs']): FieldList {
  const given = (inputs ?? {}) as Readonly<Record<string, unknown>>;
  if (typeof given.type === 'string') {
    const { properties = {}, required = [] } = given as { properties?: Record<string, Field>; required?: string[] };
    return { fields: Object.entries(properties), required: new Set(required) };
  }
  const fields = Object.entries(given) as [string, Field & { readonly required?: boolean }][];
  return { fields, required: new Set(fields.flatMap(([name, { required }]) => (required ? [name] : []))) };
}

export function StartDialog({ name, inputs, onClose }: StartProps) {
  const { client } = useApp();
  const { fields, required } = fieldsOf(inputs);
  const [values, setValues] = useState<Readonly<Record<string, string>>>(() => presets(fields));
  const [json, setJson] = useState('{}');
  const isForm = fields.length > 0;
  const start = async () => {
    const input = isForm ? readFields(fields, values) : readJson(json, 'the input');
    const body = { input, async: true };
    const { executionId } = await client.call('POST /execute/ensemble/:name', { name, body });
    goTo(['executions', executionId]);
  };
  return (
    <Confirm title={`Start ${name}`} action="Start it" onConfirm={start} onClose={onClose}>
      {fields.map(([key, field]) => (
        <InputField
          key={key}
          name={key}
          field={field}
          isRequired={required.has(key)}
          value={values[key] ?? ''}
          onValue={(value) => setValues({ ...values, [key]: value })}
        />
      ))}
      {!isForm && <JsonField label="Input, as JSON" value={json} onValue={setJson} />}
    </Confirm>
  );
}

function presets(fields: FieldList['fields']): Record<string, string> {
  return Object.fromEntries(
    fields.flatMap(([name, field]) => (field.default === undefined ? [] : [[name, asText(field.default)]])),
  );
}

function asText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** An empty field is left out. @throws ApiProblem for a value that is not JSON */
function readFields(fields: FieldList['fields'], values: Readonly<Record<string, string>>): Record<string, unknown> {
  return Object.fromEntries(
    fields.flatMap(([name, field]) => {
      const text = values[name] ?? '';
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
  const { type, description } = field;
  const label = `${name}${isRequired ? ' (required)' : ''}`;
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
