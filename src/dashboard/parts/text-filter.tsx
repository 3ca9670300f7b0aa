/** A field of a filter. What a person types stays in it until it is sent, also when the list is read again. */

interface TextFilterProps {
  readonly label: string;
  readonly value: string | undefined;
  /** Called at Enter, and when the field is left. */
  onValue(event: Event): void;
  /** The id of a list of suggestions. */
  readonly list?: string;
  /** The key `/` leads to it. */
  readonly isFirst?: boolean;
}

export function TextFilter({ label, value = '', onValue, list = '', isFirst = false }: TextFilterProps) {
  // Another value from outside, such as by Back, makes another field.
  return (
    <label>
      {label}
      <input
        key={value}
        data-filter={isFirst || undefined}
        type="search"
        list={list}
        defaultValue={value}
        onChange={onValue}
      />
    </label>
  );
}
