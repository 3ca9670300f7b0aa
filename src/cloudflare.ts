/**
 * The public names for data in Cloudflare: Workers KV and R2, through the bindings of a Worker.
 *
 * @module ensemble-orchestrator/cloudflare
 */

export {
  type KvNamespaceBinding,
  type KvNamespacePage,
  kvNamespace,
} from './adapters/storage/cloudflare/kv-namespace.ts';
export {
  type R2BucketBinding,
  type R2Description,
  type R2StoredObject,
  type R2Upload,
  type R2UploadedPart,
  r2Bucket,
} from './adapters/storage/cloudflare/r2-bucket.ts';
