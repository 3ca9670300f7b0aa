/** What `#dashboard` of package.json is in a Worker: its bundle must not have the page unless the app imports it. */

import { OrchestratorError } from '../../engine/base/errors.ts';

/** @throws NOT_CONFIGURED */
export function createDashboard(): never {
  const remedy = 'pass `dashboard: createDashboard(orchestrator)` of ensemble-orchestrator/dashboard';
  throw new OrchestratorError('NOT_CONFIGURED', `\`dashboard: true\` has no page in the bundle of a Worker: ${remedy}`);
}
