/** The form for an API token. */

import { useState } from 'preact/hooks';
import type { ApiProblem } from './api/client.ts';
import { Failure } from './parts/failure.tsx';

interface SignInProps {
  /** Whether there is a token, which the server is asked about or has refused. */
  readonly isKnown: boolean;
  readonly problem: ApiProblem | undefined;
  onToken(token: string): void;
}

export function SignIn({ isKnown, problem, onToken }: SignInProps) {
  const [token, setToken] = useState('');
  if (!problem) return <p class="empty">Signing in...</p>;
  const submit = (event: Event) => {
    event.preventDefault();
    const given = token.trim();
    if (given !== '') onToken(given);
  };
  return (
    <main class="sign-in">
      <h1>Ensembles</h1>
      {(isKnown || problem.status !== 401) && <Failure problem={problem} onRetry={() => location.reload()} />}
      <form onSubmit={submit}>
        <label>
          API token
          <input
            type="password"
            pattern="\s*[!-~]+\s*"
            title="A token has only letters, digits and hyphens"
            autocomplete="off"
            spellcheck={false}
            value={token}
            onInput={({ currentTarget }) => setToken(currentTarget.value)}
          />
        </label>
        <p class="hint">
          It stays in this tab. Its scopes decide what you see and what you can do. <code>ensemble token create</code>{' '}
          makes one. If your app has a login of its own, sign in there, and load this page again.
        </p>
        <button type="submit" class="primary">
          Sign in
        </button>
      </form>
    </main>
  );
}
