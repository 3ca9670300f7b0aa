/** `ensemble execution export`: prints all that is stored of one execution, for a replay in a test. */

import { type PlaceOptions, withService } from '../service/open-service.ts';
import type { ServiceHost } from '../service/service.ts';
import type { Output } from '../terminal/output.ts';
import { printJson } from '../terminal/text.ts';

export async function exportExecution(
  id: string,
  options: PlaceOptions,
  output: Output,
  host: ServiceHost,
): Promise<number> {
  const history = await withService(options, host, ({ executions }) => executions.history(id));
  output.print(`${printJson(history)}\n`);
  return 0;
}
