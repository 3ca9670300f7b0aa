/** The `storage` operation: keyed values (`kv`), objects (`r2`) and SQL databases (`d1`), in the configured storage or in a binding. */

import { isOrchestratorError, OrchestratorError } from '../../engine/base/errors.ts';
import type { Json, JsonObject } from '../../engine/base/json/json.ts';
import type { Operation, OperationContext } from '../../engine/operation/operation.port.ts';
import { storageNeeds, storageOutput } from './output.ts';
import { runExport } from './run-export.ts';
import { runSql } from './run-sql.ts';
import { runKv, runObjects } from './run-stores.ts';
import {
  type Binding,
  type Bindings,
  bindingName,
  checkConfig,
  KINDS,
  type StorageConfig,
  storageConfig,
  targetName,
} from './storage-config.ts';

export type { Binding } from './storage-config.ts';

/** @param bindings - by name. `kv` and `objects` are those of the configured storage, unless the host passed others */
export function storageOperation(parts: {
  readonly bindings: Readonly<Record<string, Binding>>;
  /** Unix ms */
  readonly now: () => number;
}): Operation<StorageConfig> {
  const bindings = new Map(Object.entries(parts.bindings));
  return {
    name: 'storage',
    get config() {
      return storageConfig();
    },
    // A query can select its values.
    shows: ['key', 'prefix', 'value', 'query', 'params', 'exportOptions'],
    texts: { query: 'sql' },
    ignoresInput: true,
    check: (given) => checkConfig(given, bindings),
    output: storageOutput,
    needsValues: storageNeeds,
    needs: (given) => {
      const target = targetName(given);
      return [bindingName(given), ...(target === undefined ? [] : [target])].map((name) => `binding:${name}`);
    },
    async run(context) {
      const binding = findBinding(bindings, bindingName(context.config as JsonObject), KINDS[context.config.type]);
      try {
        return await runAction(binding, bindings, context, parts.now());
      } catch (thrown) {
        if (context.signal.aborted) throw context.signal.reason;
        throw toStoreFailure(thrown, context);
      }
    },
  };
}

function findBinding<Kind extends Binding['kind']>(bindings: Bindings, name: string, kind: Kind) {
  const binding = bindings.get(name);
  if (binding?.kind === kind) return binding as Extract<Binding, { kind: Kind }>;
  throw new OrchestratorError('NOT_CONFIGURED', `storage: binding \`${name}\` is not in this process`);
}

async function runAction(
  binding: Binding,
  bindings: Bindings,
  { config, signal }: OperationContext<StorageConfig>,
  now: number,
): Promise<Json> {
  if (config.action === 'export') {
    const name = targetName(config as JsonObject);
    const target = name === undefined ? undefined : { name, store: findBinding(bindings, name, 'objects') };
    return runExport(binding, config, { now, signal, target });
  }
  if (binding.kind === 'kv') return runKv(binding, config, { now, signal });
  return binding.kind === 'objects' ? runObjects(binding, config, { now, signal }) : runSql(binding, config, signal);
}

// The message of a driver may contain addresses, users and queries. Only the log receives it, not everyone who may read executions.
// A missing package may be named: its message says what to install.
function toStoreFailure(thrown: unknown, { config: given, logger }: OperationContext<StorageConfig>): unknown {
  const known = isOrchestratorError(thrown) ? thrown : undefined;
  if (
    known &&
    known.code !== 'INTERNAL' &&
    (known.code !== 'NOT_CONFIGURED' || typeof known.details?.driver === 'string')
  )
    return known;
  const binding = bindingName(given as JsonObject);
  logger.error({ err: thrown, binding }, 'a store failed');
  const message = `storage: the store of binding \`${binding}\` failed to \`${given.action ?? 'query'}\`; the log has its error`;
  return new OrchestratorError(known?.code ?? 'AGENT_FAILED', message, {
    cause: thrown,
    retryable: known?.retryable ?? true,
  });
}
