/**
 * The public names for objects in S3 and in servers that speak its protocol.
 *
 * @module ensemble-orchestrator/s3
 */

export type { S3ObjectsOptions } from '../adapters/storage/s3/options.ts';
export { s3Objects } from '../adapters/storage/s3/s3-objects.ts';
