/** Settings: what the caller has used, and API tokens: create one, list them, revoke one. */

import { useState } from 'preact/hooks';
import { PLANS } from '../../engine/access/plan.ts';
import type { TokenItem } from '../../engine/access/rules/tokens.ts';
import { SCOPES, type TokenScope } from '../../engine/access/token.ts';
import type { Address } from '../address.ts';
import { useData } from '../api/use-data.ts';
import { useApp } from '../app-state.ts';
import { formatNumber, oneLine } from '../format.ts';
import { CopyButton } from '../parts/copy-button.tsx';
import { Confirm, Dialog } from '../parts/dialog.tsx';
import { Fact } from '../parts/fact.tsx';
import { Failure } from '../parts/failure.tsx';
import { Instant } from '../parts/instant.tsx';
import { Pager } from '../parts/pager.tsx';
import { Table } from '../parts/table.tsx';

export function Settings({ query }: { readonly query: Address['query'] }) {
  const { can, caller } = useApp();
  return (
    <>
      <h1>Settings</h1>
      <h2>You</h2>
      <p>
        {caller.name} <code class="hint">{caller.id}</code> may: {caller.scopes.join(', ') || 'nothing'}
      </p>
      <UsageView />
      {can('admin') ? (
        <TokenList query={query} />
      ) : (
        <p class="hint">
          {caller.readOnly ? 'This dashboard is read-only: it has no API tokens.' : 'API tokens need the scope admin.'}
        </p>
      )}
    </>
  );
}

/** @param id - of a token; without it, what the caller has used */
function UsageView({ id }: { readonly id?: string }) {
  const { value, problem } = useData(`usage ${id}`, (client, signal) =>
    id === undefined ? client.call('GET /usage', {}, signal) : client.call('GET /tokens/:id/usage', { id }, signal),
  );
  if (problem) return <Failure problem={problem} />;
  if (!value) return null;
  const lines = [
    ['Requests in the window of the plan', value.requests],
    ['Executions this month', value.executions],
  ] as const;
  return (
    <dl class="facts row">
      {lines.map(([title, { used, limit }]) => (
        <Fact key={title} name={title}>
          {formatNumber(used)} {limit < Number.MAX_SAFE_INTEGER ? `of ${formatNumber(limit)}` : 'without a limit'}
        </Fact>
      ))}
    </dl>
  );
}

function TokenList({ query }: { readonly query: Address['query'] }) {
  const { client, say, caller } = useApp();
  const [isNew, setNew] = useState(false);
  const [made, setMade] = useState<string>();
  const [revoked, setRevoked] = useState<TokenItem>();
  const [used, setUsed] = useState<TokenItem>();
  const { cursor } = query;
  const { value, problem, reload } = useData(`tokens ${cursor}`, (api, signal) =>
    api.call('GET /tokens', { query: { cursor } }, signal),
  );
  const revoke = async ({ id }: TokenItem) => {
    await client.call('DELETE /tokens/:id', { id });
    say('The token is revoked.');
    reload();
  };
  const onMade = (token: string) => {
    setMade(token);
    reload();
  };
  return (
    <>
      <div class="title">
        <h2>API tokens</h2>
        <button type="button" class="primary" onClick={() => setNew(true)}>
          Create a token
        </button>
      </div>
      {problem && <Failure problem={problem} onRetry={reload} />}
      {value && <TokenTable tokens={value.tokens} onRevoke={setRevoked} onUsage={setUsed} />}
      <Pager path={['settings']} query={query} next={value?.nextCursor} />
      {isNew && <NewTokenDialog onMade={onMade} onClose={() => setNew(false)} />}
      {made !== undefined && <MadeDialog token={made} onClose={() => setMade(undefined)} />}
      {used && (
        <Dialog title={`What ${oneLine(used.name, 60)} has used`} onClose={() => setUsed(undefined)}>
          <UsageView id={used.id} />
        </Dialog>
      )}
      {revoked && (
        <Confirm
          title={`Revoke the token ${oneLine(revoked.name, 60)}`}
          action="Revoke it"
          isDanger
          onConfirm={() => revoke(revoked)}
          onClose={() => setRevoked(undefined)}
        >
          <p>
            Every request with it is refused from now on. This can't be undone.
            {revoked.id === caller.id && (
              <strong> You are signed in with it: this page asks for another one then.</strong>
            )}
          </p>
        </Confirm>
      )}
    </>
  );
}

interface TokenTableProps {
  readonly tokens: readonly TokenItem[];
  onRevoke(token: TokenItem): void;
  onUsage(token: TokenItem): void;
}

function TokenTable({ tokens, onRevoke, onUsage }: TokenTableProps) {
  const { caller } = useApp();
  if (tokens.length === 0) return <p class="empty">There is no token. Create one for each app that calls the API.</p>;
  return (
    <Table heads={['Name', 'Ends with', 'Scopes', 'Plan', 'Created', 'Last used', 'Expires', '']}>
      {tokens.map((token) => (
        <tr key={token.id}>
          <td title={token.id}>
            {oneLine(token.name, 60)} {token.id === caller.id && <span class="hint">yours</span>}
          </td>
          <td>
            <code>{token.last4}</code>
          </td>
          <td class="clip">{token.scopes.join(', ')}</td>
          <td>{typeof token.plan === 'string' ? token.plan : 'own figures'}</td>
          <td>
            <Instant at={token.createdAt} />
          </td>
          <td>
            <Instant at={token.lastUsed} />
          </td>
          <td>
            <Instant at={token.expiresAt} />
          </td>
          <td>
            <button type="button" class="quiet" onClick={() => onUsage(token)}>
              Usage
            </button>
            <button type="button" class="quiet" onClick={() => onRevoke(token)}>
              Revoke
            </button>
          </td>
        </tr>
      ))}
    </Table>
  );
}

const DAY_S = 86_400;
const LIVES: readonly (readonly [string, number | undefined])[] = [
  ['30 days', 30 * DAY_S],
  ['90 days', 90 * DAY_S],
  ['a year', 365 * DAY_S],
  ['never', undefined],
];

function NewTokenDialog({ onMade, onClose }: { onMade(token: string): void; onClose(): void }) {
  const { client } = useApp();
  const [name, setName] = useState('');
  const [scopes, setScopes] = useState<readonly TokenScope[]>([]);
  const [life, setLife] = useState('1');
  const [plan, setPlan] = useState<string>('free');
  const create = async () => {
    const expiresIn = LIVES[Number(life)]?.[1];
    const body = { name: name.trim(), scopes, plan, ...(expiresIn !== undefined && { expiresIn }) };
    onMade((await client.call('POST /tokens', { body })).token);
  };
  const toggle = (scope: TokenScope) =>
    setScopes(scopes.includes(scope) ? scopes.filter((one) => one !== scope) : [...scopes, scope]);
  return (
    <Confirm title="Create an API token" action="Create it" onConfirm={create} onClose={onClose}>
      <label>
        Name
        <input required maxLength={100} value={name} onInput={({ currentTarget }) => setName(currentTarget.value)} />
      </label>
      <fieldset>
        <legend>Scopes</legend>
        {SCOPES.map((scope) => (
          <label key={scope} class="check">
            <input type="checkbox" checked={scopes.includes(scope)} onChange={() => toggle(scope)} />
            {scope}
          </label>
        ))}
      </fieldset>
      <label>
        Expires after
        <select value={life} onChange={({ currentTarget }) => setLife(currentTarget.value)}>
          {LIVES.map(([title], i) => (
            <option key={title} value={String(i)}>
              {title}
            </option>
          ))}
        </select>
      </label>
      <label>
        Plan
        <select value={plan} onChange={({ currentTarget }) => setPlan(currentTarget.value)}>
          {PLANS.map((one) => (
            <option key={one} value={one}>
              {one}
            </option>
          ))}
        </select>
        <span class="hint">With the plan free, this page reads once a minute or less often.</span>
      </label>
    </Confirm>
  );
}

function MadeDialog({ token, onClose }: { readonly token: string; onClose(): void }) {
  return (
    <Dialog title="The new token" onClose={onClose}>
      <p>Copy it now: it is shown only this once.</p>
      <p>
        <code class="secret">{token}</code>
      </p>
      <CopyButton text={() => token}>Copy the token</CopyButton>
    </Dialog>
  );
}
