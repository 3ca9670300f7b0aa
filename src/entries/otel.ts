/**
 * The public names for traces and metrics by OpenTelemetry.
 *
 * @module ensemble-orchestrator/otel
 */

export { type OpenTelemetryOptions, openTelemetry } from '../adapters/otel/open-telemetry.ts';
