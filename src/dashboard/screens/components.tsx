/** Components: the list, and one with its versions, their differences, its environments, and what deploys and rolls back. */

import { useState } from 'preact/hooks';
import type { ComponentVersion, Deployment } from '../../engine/component/component.ts';
import { type Address, changeQuery, linkTo } from '../address.ts';
import { useData } from '../api/use-data.ts';
import { useApp } from '../app-state.ts';
import { oneLine } from '../format.ts';
import { CodeDiff, CodeLines } from '../parts/code-lines.tsx';
import { Confirm } from '../parts/dialog.tsx';
import { Failure } from '../parts/failure.tsx';
import { Instant } from '../parts/instant.tsx';
import { Pager } from '../parts/pager.tsx';
import { RowLink } from '../parts/row-link.tsx';
import { Table } from '../parts/table.tsx';

export function Components({ query: { cursor } }: { readonly query: Address['query'] }) {
  const { value, problem, isLoading, reload } = useData(`components ${cursor}`, (client, signal) =>
    client.call('GET /components', { query: { cursor } }, signal),
  );
  return (
    <>
      <h1>Components</h1>
      {problem && <Failure problem={problem} onRetry={reload} />}
      {isLoading && <p class="empty">Loading...</p>}
      {value?.components.length === 0 && (
        <p class="empty">
          There is no component. <code>ensemble component add</code> adds a prompt, a template, a config or a query.
        </p>
      )}
      {value && value.components.length > 0 && (
        <Table heads={['Name', 'Kind', 'Newest version', 'What it is for']}>
          {value.components.map(({ name, kind, latest, metadata }) => (
            <tr key={name}>
              <td>
                <RowLink path={['components', name]}>{name}</RowLink>
              </td>
              <td>{kind}</td>
              <td>{latest ?? <span class="hint">none</span>}</td>
              <td class="clip">{oneLine(metadata.description ?? '')}</td>
            </tr>
          ))}
        </Table>
      )}
      <Pager path={['components']} query={{ cursor }} next={value?.nextCursor} />
    </>
  );
}

interface Found {
  readonly versions: readonly ComponentVersion[];
  readonly deployments: readonly Deployment[];
}

export function ComponentScreen({ name, query }: { readonly name: string; readonly query: Address['query'] }) {
  const { value, problem, isLoading, reload } = useData(`component ${name}`, async (client, signal): Promise<Found> => {
    const [versions, deployments] = await Promise.all([
      client.all('GET /components/:name/versions', 'versions', { name }, signal),
      client.all('GET /components/:name/deployments', 'deployments', { name }, signal),
    ]);
    return { versions, deployments };
  });
  if (!value)
    return (
      <>
        <h1>{name}</h1>
        {isLoading && <p class="empty">Loading...</p>}
        {problem && <Failure problem={problem} onRetry={reload} />}
      </>
    );
  const [newest] = value.versions;
  const shown = query.version ?? newest?.version;
  return (
    <>
      <h1>{name}</h1>
      {newest === undefined && <p class="empty">It has no version yet.</p>}
      <Matrix name={name} found={value} shown={shown} onChange={reload} />
      {shown !== undefined && <Text name={name} version={shown} versions={value.versions} other={query.with} />}
    </>
  );
}

interface Asked {
  readonly environment: string;
  /** Absent: the version before. */
  readonly version?: string;
  readonly previous?: string;
  /** The version that a rollback is for, as the page shows it. */
  readonly from?: string;
}

interface MatrixProps {
  readonly name: string;
  readonly found: Found;
  readonly shown: string | undefined;
  onChange(): void;
}

/** A row for each version, a column for each environment. */
function Matrix({ name, found: { versions, deployments }, shown, onChange }: MatrixProps) {
  const { can } = useApp();
  const [asked, setAsked] = useState<Asked>();
  const environments = deployments.filter(({ environment }) => environment !== 'latest');
  const mayWrite = can('write:components');
  return (
    <div class="table-frame">
      <table>
        <thead>
          <tr>
            <th scope="col">Version</th>
            <th scope="col">Created</th>
            <th scope="col">Why</th>
            {environments.map(({ environment, version: from, previous }) => (
              <th key={environment} scope="col">
                {environment}{' '}
                {mayWrite && previous !== undefined && (
                  <button type="button" class="quiet" onClick={() => setAsked({ environment, from, previous })}>
                    Roll back
                  </button>
                )}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {versions.map(({ version, createdAt, message = '' }) => (
            <tr key={version}>
              <td>
                <a
                  data-row
                  href={linkTo(['components', name], { version })}
                  aria-current={version === shown || undefined}
                >
                  {version}
                </a>
              </td>
              <td>
                <Instant at={createdAt} />
              </td>
              <td class="clip">{oneLine(message)}</td>
              {environments.map((deployment) => (
                <td key={deployment.environment}>
                  {shareOf(deployment, version) ??
                    (mayWrite && (
                      <button
                        type="button"
                        class="quiet"
                        onClick={() => setAsked({ environment: deployment.environment, version })}
                      >
                        Deploy
                      </button>
                    ))}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {mayWrite && versions[0] && <NewEnvironment version={shown ?? versions[0].version} onAsk={setAsked} />}
      {asked && <DeployDialog name={name} asked={asked} onDone={onChange} onClose={() => setAsked(undefined)} />}
    </div>
  );
}

function shareOf({ version: own, split, rollout, deployedAt, by, message }: Deployment, version: string) {
  const share = split ? split[version] : own === version ? 100 : undefined;
  if (share === undefined) return undefined;
  return (
    <>
      <strong>{share === 100 ? 'deployed' : `${share} %`}</strong>{' '}
      {rollout && <span class="hint">rollout, guard {rollout.guard}</span>} <Instant at={deployedAt} />{' '}
      <span class="hint">
        {[by && `by ${by}`, message]
          .filter(Boolean)
          .map((text) => oneLine(String(text), 80))
          .join(': ')}
      </span>
    </>
  );
}

function NewEnvironment({ version, onAsk }: { readonly version: string; onAsk(asked: Asked): void }) {
  const [environment, setEnvironment] = useState('');
  const submit = (event: Event) => {
    event.preventDefault();
    if (environment.trim() !== '') onAsk({ environment: environment.trim(), version });
  };
  return (
    <form class="filters inset" onSubmit={submit}>
      <label>
        Another environment
        <input value={environment} onInput={({ currentTarget }) => setEnvironment(currentTarget.value)} />
      </label>
      <button type="submit">Deploy {version} to it</button>
    </form>
  );
}

interface DeployProps {
  readonly name: string;
  readonly asked: Asked;
  onDone(): void;
  onClose(): void;
}

function DeployDialog({ name, asked: { environment, version, from, previous }, onDone, onClose }: DeployProps) {
  const { client, say } = useApp();
  const [message, setMessage] = useState('');
  const reason = message.trim() === '' ? {} : { message: message.trim() };
  const confirm = async () => {
    const path = '/components/:name/deployments/:environment';
    if (version === undefined)
      await client.call(`POST ${path}/rollback`, { name, environment, body: { from, ...reason } });
    else await client.call(`PUT ${path}`, { name, environment, body: { version, ...reason } });
    say(`${environment} has ${version ?? previous}.`);
    onDone();
  };
  return (
    <Confirm
      title={version === undefined ? `Roll ${environment} back to ${previous}` : `Deploy ${version} to ${environment}`}
      action={version === undefined ? 'Roll back' : 'Deploy'}
      onConfirm={confirm}
      onClose={onClose}
    >
      <p>Executions that begin from now on use it. Those that have used another version keep it.</p>
      <label>
        Why
        <input value={message} maxLength={500} onInput={({ currentTarget }) => setMessage(currentTarget.value)} />
      </label>
    </Confirm>
  );
}

interface TextProps {
  readonly name: string;
  readonly version: string;
  readonly versions: readonly ComponentVersion[];
  readonly other: string | undefined;
}

function Text({ name, version, versions, other }: TextProps) {
  const key = `${name} ${version} ${other}`;
  const { value, problem } = useData(key, async (client, signal) => {
    const read = (one: string) =>
      client.call('GET /components/:name/versions/:version', { name, version: one }, signal);
    const [own, compared] = await Promise.all([read(version), other === undefined ? undefined : read(other)]);
    return { own: own.content, other: compared?.content };
  });
  return (
    <section>
      <div class="title">
        <h2>{version}</h2>
        <label>
          Compared with
          <select
            value={other ?? ''}
            onChange={({ currentTarget }) => changeQuery({ with: currentTarget.value || undefined, version })}
          >
            <option value="">nothing</option>
            {versions
              .filter((one) => one.version !== version)
              .map((one) => (
                <option key={one.version} value={one.version}>
                  {one.version}
                </option>
              ))}
          </select>
        </label>
      </div>
      {problem && <Failure problem={problem} />}
      {value && value.other === undefined && <CodeLines text={value.own} label={`Text of ${version}`} />}
      {value?.other !== undefined && (
        <CodeDiff before={value.other} after={value.own} label={`From ${other} to ${version}`} />
      )}
    </section>
  );
}
