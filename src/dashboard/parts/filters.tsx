/** The filter of a list: its fields, whose values are in the address, and how a dialog shows it. */

import { type Address, changeQuery } from '../address.ts';
import { useData } from '../api/use-data.ts';
import { useApp } from '../app-state.ts';
import { visible } from '../format.ts';

type Query = Address['query'];

/** A new value of a field leads to the first page. */
export function setFilter(name: string, value: string | undefined): void {
  changeQuery({ [name]: value?.trim() || undefined, cursor: undefined });
}

/** The filter that an address has. @param keys - of the list */
export function filterOf(query: Query, keys: readonly string[]): Record<string, string> {
  return Object.fromEntries(Object.entries(query).filter(([key, value]) => keys.includes(key) && value !== ''));
}

interface FieldProps {
  readonly query: Query;
  /** Of the value in the address. */
  readonly name: string;
  readonly label: string;
}

interface TextFilterProps extends FieldProps {
  readonly suggestions?: readonly string[];
  /** The key `/` leads to it. */
  readonly isFirst?: boolean;
}

/** What a person types stays in it until Enter, or until it is left, also when the list is read again. */
export function TextFilter({ query, name, label, suggestions = [], isFirst = false }: TextFilterProps) {
  const value = query[name] ?? '';
  // Another value from outside, such as by Back, makes another field.
  return (
    <label>
      {label}
      <input
        key={value}
        data-filter={isFirst || undefined}
        type="search"
        list={`${name}-suggestions`}
        defaultValue={value}
        onChange={({ currentTarget }) => setFilter(name, currentTarget.value)}
      />
      <datalist id={`${name}-suggestions`}>
        {suggestions.map((text) => (
          <option key={text} value={text} />
        ))}
      </datalist>
    </label>
  );
}

interface ChoiceProps extends FieldProps {
  readonly choices: readonly string[];
  /** What the field says without a choice. Default `any`. */
  readonly none?: string;
}

export function ChoiceFilter({ query, name, label, choices, none = 'any' }: ChoiceProps) {
  return (
    <label>
      {label}
      <select value={query[name] ?? ''} onChange={({ currentTarget }) => setFilter(name, currentTarget.value)}>
        <option value="">{none}</option>
        {choices.map((choice) => (
          <option key={choice} value={choice}>
            {choice.replaceAll('_', ' ')}
          </option>
        ))}
      </select>
    </label>
  );
}

/** It suggests the names of ensembles to who may read them. */
export function EnsembleFilter({ query }: { readonly query: Query }) {
  const { can } = useApp();
  const { value } = useData(can('read:ensembles') ? 'ensemble-names' : undefined, (client, signal) =>
    client.all('GET /ensembles', 'ensembles', {}, signal),
  );
  const names = value?.map(({ name }) => name);
  return <TextFilter query={query} name="ensemble" label="Ensemble" {...(names && { suggestions: names })} />;
}

interface FilterTextProps {
  readonly filter: Readonly<Record<string, unknown>>;
  /** What it is for without a filter, such as `all executions`. */
  readonly all: string;
}

/** For what a change is. */
export function FilterText({ filter, all }: FilterTextProps) {
  const entries = Object.entries(filter);
  return (
    <p>
      {entries.length === 0 ? <strong>There is no filter: this is for {all}. </strong> : 'All that match: '}
      {entries.map(([key, value]) => (
        <code key={key}>
          {key} {visible(String(value))}{' '}
        </code>
      ))}
    </p>
  );
}
