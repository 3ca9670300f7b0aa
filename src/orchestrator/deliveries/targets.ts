/** Finds where a delivery goes: the notification in the stored definition, evaluated with the variables of this process. */

import type { CompileHost } from '../../engine/definition/compile/triggers/compile-host.ts';
import { compileNotifications } from '../../engine/definition/compile/triggers/compile-notifications.ts';
import type { NewDelivery } from '../../engine/delivery/delivery.ts';
import type { NotificationTarget } from '../../engine/delivery/notification.ts';
import type { EnsembleDefinition } from '../../engine/ensemble/ensemble.ts';
import type { DefinitionStore } from '../../engine/storage/storage.port.ts';

/** A target, or why there is none in this process. */
export type FoundTarget = NotificationTarget | { readonly problem: string };
export type FindTarget = (delivery: Pick<NewDelivery, 'version' | 'notification'>) => Promise<FoundTarget>;

/** How many versions are kept in memory. */
const MAX_KEPT = 1000;

export function createTargets(definitions: DefinitionStore, host: CompileHost): FindTarget {
  const known = new Map<string, readonly FoundTarget[]>();

  const load = async (version: string): Promise<readonly FoundTarget[]> => {
    const stored = await definitions.get(version);
    const { notifications } = (stored?.definition ?? {}) as unknown as Partial<EnsembleDefinition>;
    const problems: string[][] = (notifications ?? []).map(() => []);
    const targets = compileNotifications(notifications, {
      host,
      dropped: () => false,
      report({ path, message, warning }) {
        if (!warning) problems[Number(path[1])]?.push(`${path.slice(2).join('.')} ${message}`.trim());
      },
    });
    return targets.map((target, i) => {
      const [problem] = problems[i] ?? [];
      return target && problem === undefined ? target : { problem: problem ?? 'it can not be read' };
    });
  };

  return async ({ version, notification }) => {
    let targets = known.get(version);
    if (!targets) {
      targets = await load(version);
      if (known.size >= MAX_KEPT) known.clear();
      known.set(version, targets);
    }
    return targets[notification] ?? { problem: `its definition ${version} is not stored` };
  };
}
