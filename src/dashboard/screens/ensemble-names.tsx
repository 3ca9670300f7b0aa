/** The names of the ensembles, for a field that takes one. */

import { useData } from '../api/use-data.ts';
import { useApp } from '../app-state.ts';

export function EnsembleNames({ id }: { readonly id: string }) {
  const { can } = useApp();
  const { value } = useData(can('read:ensembles') ? 'ensemble-names' : undefined, (client, signal) =>
    client.get<{ readonly ensembles: readonly { readonly name: string }[] }>('/ensembles', { limit: 250 }, signal),
  );
  return (
    <datalist id={id}>
      {value?.ensembles.map(({ name }) => (
        <option key={name} value={name} />
      ))}
    </datalist>
  );
}
