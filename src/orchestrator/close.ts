/** `orchestrator.close()`: closes the parts one after the other. It never fails, and takes no longer than it may. */

import { OrchestratorError } from '../engine/base/errors.ts';
import { DURATION_RULE, type Duration, toMs } from '../engine/base/time/duration.ts';
import { underDeadline } from '../engine/base/time/under-deadline.ts';
import type { Clock } from '../engine/host/clock.port.ts';
import type { Logger } from '../engine/host/logger.port.ts';
import type { ToolServers } from '../engine/operation/tool-server.port.ts';
import type { Storage } from '../engine/storage/storage.port.ts';
import type { DeliveryService } from './deliveries/delivery-service.ts';
import { closeMail } from './options/mail.ts';
import type { OrchestratorOptions } from './options/options.ts';
import type { ExecutionService } from './runs/execution-service.ts';

/** How long `close` takes at most after its grace. */
const LAST_MS = 2_000;

/** What is closed, for people, and how. @param leftMs - how long it may take */
type ClosedPart = readonly [what: string, close: (leftMs: number) => unknown];

/** A part that fails or takes too long is logged, and the next one is closed. */
async function closeInOrder(
  { clock, logger, graceMs }: { readonly clock: Clock; readonly logger: Logger; readonly graceMs: number },
  parts: readonly ClosedPart[],
): Promise<void> {
  const endsAt = clock.monotonic() + graceMs + LAST_MS;
  for (const [part, close] of parts) {
    const leftMs = Math.max(0, endsAt - clock.monotonic());
    const late = () => new OrchestratorError('TIMEOUT', `closing took longer than ${graceMs + LAST_MS} ms`);
    try {
      await underDeadline({ timeoutMs: leftMs, setTimer: clock.setTimer, late }, async () => close(leftMs));
    } catch (err) {
      logger.error({ err, part }, 'a part could not be closed');
    }
  }
}

export interface ClosedDependencies {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly storage: Storage;
  readonly executionService: ExecutionService;
  readonly toolServers: ToolServers;
  readonly deliveries: Pick<DeliveryService, 'close'>;
  /** Stops what is timed. */
  stop(): void;
}

export function createClose({ pdf, mail }: OrchestratorOptions, dependencies: ClosedDependencies) {
  const { clock, logger, storage, executionService, toolServers, deliveries, stop } = dependencies;
  let closing: Promise<void> | undefined;
  return ({ grace = 25_000 }: { readonly grace?: Duration } = {}): Promise<void> => {
    const graceMs = toMs(grace);
    if (!(graceMs >= 0)) return Promise.reject(new TypeError(`close: \`grace\` ${DURATION_RULE}, not ${grace}`));
    stop();
    const ports = async () => Promise.all([toolServers.close(), pdf?.close?.(), closeMail(mail)]);
    closing ??= closeInOrder({ clock, logger, graceMs }, [
      ['the executions', () => executionService.engine.close(graceMs)],
      ['the deliveries', (leftMs) => deliveries.close(Math.min(graceMs, leftMs))],
      ['the tool servers, renderers and mail senders', ports],
      ['the storage', () => storage.close()],
    ]);
    return closing;
  };
}
