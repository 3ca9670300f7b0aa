/**
 * The public names for the dashboard.
 *
 * @module ensemble-orchestrator/dashboard
 */

export { createDashboard, type DashboardOptions } from '../http-handlers/create-dashboard.ts';
