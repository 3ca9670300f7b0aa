/**
 * The public names for data in Cloudflare: Workers KV, R2 and D1, through the bindings of a Worker.
 *
 * @module ensemble-orchestrator/cloudflare
 */

export { type D1DatabaseBinding, type D1Statement, d1Database } from '../adapters/storage/cloudflare/d1-database.ts';
export {
  type KvNamespaceBinding,
  type KvNamespacePage,
  kvNamespace,
} from '../adapters/storage/cloudflare/kv-namespace.ts';
export {
  type R2BucketBinding,
  type R2Description,
  type R2StoredObject,
  type R2Upload,
  type R2UploadedPart,
  r2Bucket,
} from '../adapters/storage/cloudflare/r2-bucket.ts';
