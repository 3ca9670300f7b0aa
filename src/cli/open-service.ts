/** What `token` and `execution` commands work on: a store of this machine, or a running server. */

import type { EnsembleDefinition } from '../engine/model/ensemble.ts';
import { wrongUsage } from './cli-error.ts';
import { type Guest, type GuestNeeds, type GuestOptions, openGuest } from './open-store.ts';
import { connect } from './remote.ts';
import type { Service, ServiceHost } from './service.ts';

export interface PlaceOptions extends GuestOptions {
  readonly url?: string;
  readonly token?: string;
}

/**
 * Opens what the options name, calls `work` with it, and closes it.
 *
 * @param needs - what it needs of a store of this machine
 * @throws CliError when the options say two things at once, or what they name can't be opened
 */
export async function withService<T>(
  options: PlaceOptions,
  { cwd, process }: ServiceHost,
  work: (service: Service) => Promise<T>,
  needs: GuestNeeds = {},
): Promise<T> {
  const { url, token } = options;
  const named = options.storage !== undefined || options.dir !== undefined;
  if (url !== undefined && named) {
    throw wrongUsage('--url names a running server, --storage and --dir a store: give one of them');
  }
  const server = url ?? (named ? undefined : process.env.ENSEMBLE_URL || undefined);
  if (server === undefined && token !== undefined)
    throw wrongUsage('--token is for a running server; name it with --url');
  const service =
    server === undefined
      ? asService(await openGuest(options, cwd, needs))
      : connect(server, token ?? process.env.ENSEMBLE_TOKEN);
  try {
    return await work(service);
  } finally {
    await service.close();
  }
}

function asService({ orchestrator, storage }: Guest): Service {
  const { executions } = orchestrator;
  return {
    tokens: orchestrator.tokens,
    executions: {
      ...executions,
      retry: async (id) => executions.get((await executions.retry(id)).id),
      async definition({ version }) {
        const stored = await storage.getDefinition(version);
        return stored && { version, definition: stored.definition as unknown as EnsembleDefinition };
      },
    },
    close: () => orchestrator.close(),
  };
}
