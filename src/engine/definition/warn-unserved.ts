/** Parts of a definition that are right, are checked and kept, and that this version does not serve: each is a warning. */

import type { EnsembleDefinition } from '../model/ensemble.ts';
import type { Report } from './check-shape.ts';

const WEBHOOK =
  'webhooks are checked and not served by this version; start the ensemble from a route of your own with `orchestrator.start`';
const NOTIFICATION =
  'notifications are checked and not sent by this version; `orchestrator.on(event, listener)` tells of the same events';

export function warnUnserved(definition: EnsembleDefinition, report: Report): void {
  definition.trigger?.forEach(({ type }, i) => {
    if (type === 'webhook') report({ path: ['trigger', i], message: WEBHOOK, warning: true });
  });
  definition.notifications?.forEach((_notification, i) => {
    report({ path: ['notifications', i], message: NOTIFICATION, warning: true });
  });
}
