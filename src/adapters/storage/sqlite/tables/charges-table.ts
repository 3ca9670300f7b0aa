/** How many executions each caller was charged for, and how many of them are held. */

import type { Charge } from '../../../../engine/access/quota.ts';
import type { UsageStore } from '../../../../engine/storage/storage.port.ts';
import type { SqlConnection } from '../drivers/driver.ts';
import { toTextColumn } from './columns.ts';
import { SLOTS } from './names.ts';

/** What the starts of one batch count. Each caller is read once and written once. */
export interface BatchCharges {
  /** Which limit of its caller a start does not keep. */
  refusal(charge: Charge, isHeld: boolean): 'quota-exceeded' | 'slots-taken' | undefined;
  /** Counts a start that is stored, or one that is undone. */
  count(charge: Charge, isHeld: boolean, by: 1 | -1): void;
  /** Stores what was counted, in the transaction of the batch. */
  store(): void;
}

export interface ChargesTable extends UsageStore {
  ofBatch(): BatchCharges;
}

interface Counted {
  readonly charge: Charge;
  stored: number;
  added: number;
}

export function chargesTable(connection: SqlConnection, namespace: string): ChargesTable {
  const select = connection.prepare(
    'SELECT charged FROM ensemble_charges WHERE namespace = ? AND account = ? AND period = ?',
  );
  const upsert = connection.prepare(`
    INSERT INTO ensemble_charges (namespace, account, period, charged) VALUES (?, ?, ?, ?)
    ON CONFLICT (namespace, account, period) DO UPDATE SET charged = charged + excluded.charged`);
  const countHeld = connection.prepare(`SELECT count(*) AS taken FROM ${SLOTS} AND namespace = ? AND account = ?`);
  const charged = (account: string, period: string) =>
    (select.all([namespace, toTextColumn(account), period])[0]?.charged ?? 0) as number;
  const running = (account: string) => countHeld.all([namespace, toTextColumn(account)])[0]?.taken as number;

  return {
    charged,
    running,
    ofBatch() {
      const months = new Map<string, Counted>();
      /** At least as many slots as are taken: what ends in this batch is only seen when the slots are counted again. */
      const taken = new Map<string, number>();
      const countedOf = (charge: Charge) => {
        const key = `${charge.period} ${charge.account}`;
        const known = months.get(key);
        if (known) return known;
        const made = {
          charge,
          stored: charge.limit === undefined ? 0 : charged(charge.account, charge.period),
          added: 0,
        };
        months.set(key, made);
        return made;
      };
      const hasSlot = ({ account, slots = Number.POSITIVE_INFINITY }: Charge) => {
        if ((taken.get(account) ?? slots) >= slots) taken.set(account, running(account));
        return (taken.get(account) as number) < slots;
      };
      return {
        refusal(charge, isHeld) {
          const { stored, added } = countedOf(charge);
          if (charge.limit !== undefined && stored + added >= charge.limit) return 'quota-exceeded';
          return charge.slots !== undefined && isHeld && !hasSlot(charge) ? 'slots-taken' : undefined;
        },
        count(charge, isHeld, by) {
          countedOf(charge).added += by;
          if (charge.slots !== undefined && isHeld) taken.set(charge.account, (taken.get(charge.account) ?? 0) + by);
        },
        store() {
          for (const { charge, added } of months.values())
            if (added > 0) upsert.run([namespace, toTextColumn(charge.account), charge.period, added]);
        },
      };
    },
  };
}
