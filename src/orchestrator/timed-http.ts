/** The HTTP client of the host, whose requests also end on the clock of the orchestrator. */

import { OrchestratorError } from '../engine/base/errors.ts';
import { underDeadline } from '../engine/base/under-deadline.ts';
import type { Clock } from '../engine/ports/clock.ts';
import type { HttpClient, HttpRequest } from '../engine/ports/http.ts';

/** So a client that hangs ends on the manual clock of a test, and one that ignores `timeoutMs` ends too. */
export function timedHttp(http: HttpClient, { setTimer }: Clock): HttpClient {
  return {
    send(request) {
      const { timeoutMs, signal } = request;
      if (timeoutMs === undefined) return http.send(request);
      const deadline = { timeoutMs, setTimer, late: () => timeoutFailure(request), ...(signal && { signal }) };
      return underDeadline(deadline, (within) => http.send({ ...request, signal: within }));
    },
  };
}

function timeoutFailure({ method, url, timeoutMs }: HttpRequest): OrchestratorError {
  const message = `${method} ${url.split('?')[0]} took longer than ${timeoutMs} ms; raise its timeout or look at the peer`;
  return new OrchestratorError('TIMEOUT', message, { details: { timeoutMs }, retryable: true });
}
