/** Signs a caller in: by the login of the host, or by an API token, which stays in this tab. */

import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { hasScope } from '../engine/access/token.ts';
import { type ApiProblem, createClient } from './api/client.ts';
import { toProblem } from './api/use-data.ts';
import { AppContext, type AppState, type Caller } from './app-state.ts';
import { Shell } from './shell.tsx';
import { SignIn } from './sign-in.tsx';

const MESSAGE_MS = 6_000;
/** Other dashboards of the same origin have a token of their own. */
const storageKey = () => `ensemble-token ${location.pathname}`;

export function App() {
  const [token, setToken] = useState(() => sessionStorage.getItem(storageKey()) ?? undefined);
  const [caller, setCaller] = useState<Caller>();
  const [problem, setProblem] = useState<ApiProblem>();
  const [message, setMessage] = useState('');
  const left = useRef<string | undefined>(undefined);

  const refused = (why: ApiProblem) => {
    setCaller(undefined);
    setProblem(why);
  };
  const client = useMemo(() => createClient(token, refused), [token]);
  useEffect(() => {
    setProblem(undefined);
    client.call('GET /caller', {}).then(setCaller, (thrown) => setProblem(toProblem(thrown)));
  }, [client]);
  useEffect(() => {
    const timer = setTimeout(() => setMessage(''), MESSAGE_MS);
    return () => clearTimeout(timer);
  }, [message]);

  const signIn = (given: string) => {
    sessionStorage.setItem(storageKey(), given);
    if (given === token) location.reload();
    setToken(given);
  };
  const signOut = () => {
    sessionStorage.removeItem(storageKey());
    setCaller(undefined);
    setToken(undefined);
  };
  if (!caller) return <SignIn isKnown={token !== undefined} problem={problem} onToken={signIn} />;
  const state: AppState = {
    client,
    caller,
    can: (scope) => hasScope(caller, scope),
    say: setMessage,
    left,
    signOut: token === undefined ? undefined : signOut,
  };
  return (
    <AppContext.Provider value={state}>
      <Shell />
      <div class="message" role="status" aria-live="polite">
        {message}
      </div>
    </AppContext.Provider>
  );
}
