/** Opens what commands such as `token` and `execution` use: a store of this machine, or a running server. */

import { userInfo } from 'node:os';
import { isOrchestratorError } from '../../engine/base/errors.ts';
import { wrongUsage } from '../terminal/cli-error.ts';
import { type Client, type ClientNeeds, type ClientOptions, openClient } from './open-store.ts';
import { connect } from './remote.ts';
import type { Service, ServiceHost } from './service.ts';

export interface PlaceOptions extends ClientOptions {
  readonly url?: string;
  readonly token?: string;
}

/**
 * Opens the store or the server that the options name, calls `work` with it, and closes it.
 *
 * @param needs - what `work` needs of a store of this machine
 * @throws CliError when the options contradict each other, or when the store or the server can't be opened
 */
export async function withService<T>(
  options: PlaceOptions,
  { cwd, process }: ServiceHost,
  work: (service: Service) => Promise<T>,
  needs: ClientNeeds = {},
): Promise<T> {
  const { url, token } = options;
  const named = options.storage !== undefined || options.dir !== undefined;
  if (url !== undefined && named) {
    throw wrongUsage('--url names a running server, but --storage and --dir name a store: leave one of them out');
  }
  const server = url ?? (named ? undefined : process.env.ENSEMBLE_URL || undefined);
  if (server === undefined && token !== undefined)
    throw wrongUsage('--token is for a running server; name it with --url');
  const service =
    server === undefined
      ? asService(await openClient(options, cwd, needs))
      : connect(server, token ?? process.env.ENSEMBLE_TOKEN);
  try {
    return await work(service);
  } finally {
    await service.close();
  }
}

function asService({ orchestrator, folder, repository }: Client): Service {
  const { executions, components, ensembles } = orchestrator;
  const actor = userInfo().username;
  return {
    tokens: orchestrator.tokens,
    ensembles: {
      ...ensembles,
      create: (definition, options) => ensembles.create(definition, { actor, ...options }),
      update: (name, definition, options) => ensembles.update(name, definition, { actor, ...options }),
      rollback: (name, options) => ensembles.rollback(name, { actor, ...options }),
      traffic: (name, traffic) => ensembles.traffic(name, traffic && { actor, ...traffic }),
      find: (name) => orNone(ensembles.get(name)),
    },
    deliveries: orchestrator.deliveries,
    components: {
      ...components,
      folder,
      repository,
      createVersion: (name, version) => components.createVersion(name, { actor, ...version }),
      deploy: (name, deployment) => components.deploy(name, { actor, ...deployment }),
      rollback: (name, options) => components.rollback(name, { actor, ...options }),
      async version(name, ref, key) {
        const { kind } = await components.get(name);
        return components.resolve(`${kind}://${name}@${ref}`, key === undefined ? {} : { key });
      },
    },
    executions: {
      ...executions,
      cancel: (id, options) => executions.cancel(id, { actor, ...options }),
      pause: (id, options) => executions.pause(id, { actor, ...options }),
      resume: (id, options) => executions.resume(id, { actor, ...options }),
      pauseAll: (of, options) => executions.pauseAll(of, { actor, ...options }),
      resumeAll: (of, options) => executions.resumeAll(of, { actor, ...options }),
      complete: (id, key, output, options) => executions.complete(id, key, output, { actor, ...options }),
      move: (options) => executions.move({ actor, ...options }),
      retry: async (id, options) => executions.get((await executions.retry(id, { actor, ...options })).id),
    },
    audit: orchestrator.audit,
    close: () => orchestrator.close(),
  };
}

async function orNone<T>(found: Promise<T>): Promise<T | undefined> {
  try {
    return await found;
  } catch (error) {
    if (isOrchestratorError(error, 'NOT_FOUND')) return undefined;
    throw error;
  }
}
