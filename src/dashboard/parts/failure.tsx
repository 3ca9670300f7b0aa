/** Why something failed, and what helps. */

import type { ApiProblem } from '../api/client.ts';
import { formatDuration, visible } from '../format.ts';

interface FailureProps {
  readonly problem: ApiProblem;
  readonly onRetry?: () => void;
}

export function Failure({ problem, onRetry }: FailureProps) {
  const { code, message, details, requestId, status } = problem;
  const issues = Array.isArray(details.issues) ? (details.issues as { path?: string; message?: string }[]) : [];
  return (
    <div class="failure" role="alert">
      <strong>{code}</strong> {visible(message)}
      {issues.length > 0 && (
        <ul>
          {issues.slice(0, 20).map(({ path, message: text }) => (
            <li key={`${path} ${text}`}>
              {path && <code>{visible(path)}</code>} {visible(String(text))}
            </li>
          ))}
        </ul>
      )}
      <p class="hint">
        {remedyOf(problem)}
        {requestId && status >= 500 && (
          <>
            {' '}
            Request <code>{requestId}</code>
          </>
        )}
      </p>
      {onRetry && (
        <button type="button" onClick={onRetry}>
          Try again
        </button>
      )}
    </div>
  );
}

/** What a person can do about an error of the API. */
export function remedyOf({ status, code, details }: Pick<ApiProblem, 'status' | 'code' | 'details'>): string {
  if (code === 'FORBIDDEN' && details.requiredScope !== undefined)
    return `Sign in with a token that has the scope ${details.requiredScope}.`;
  if (status === 401) return 'The token or the login is unknown, or is no longer valid. Sign in again.';
  if (status === 404) return 'It may have been deleted. Look it up in the list.';
  if (status === 409) return 'It has changed in the meantime. Load it again, then decide.';
  if (status === 429) {
    const { retryAfter } = details;
    const wait = typeof retryAfter === 'number' ? formatDuration(retryAfter * 1000) : 'a while';
    return `Wait ${wait}. Another token has a limit of its own.`;
  }
  if (code === 'UNKNOWN_ANSWER') return 'Something between this page and the service answered. Does the service run?';
  if (status === 503) return 'The service or its store has too much to do, or does not answer. Try again soon.';
  if (status >= 500) return 'The log of the service has the reason.';
  return '';
}
