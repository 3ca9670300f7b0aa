/** Ensembles: the list, and one with its definition, its triggers, the versions that ran, and a form that starts it. */

import { useState } from 'preact/hooks';
import type { EnsembleDefinition } from '../../engine/ensemble/ensemble.ts';
import type { EnsembleItem as Item } from '../../orchestrator/definitions/definitions.ts';
import { type Address, changeQuery, goTo, linkTo } from '../address.ts';
import { useData } from '../api/use-data.ts';
import { useApp } from '../app-state.ts';
import { FlowView } from '../execution/flow-view.tsx';
import { count, oneLine, visible } from '../format.ts';
import { Badge } from '../parts/badge.tsx';
import { CodeDiff, CodeLines } from '../parts/code-lines.tsx';
import { Confirm } from '../parts/dialog.tsx';
import { Failure } from '../parts/failure.tsx';
import { FormFields, formOf, presets, readFields } from '../parts/form-fields.tsx';
import { Instant } from '../parts/instant.tsx';
import { JsonField, readJson } from '../parts/json-field.tsx';
import { Pager } from '../parts/pager.tsx';
import { RowLink } from '../parts/row-link.tsx';
import { Table } from '../parts/table.tsx';
import { toYaml } from '../parts/yaml-text.ts';
import type { ExecutionPage } from './executions.tsx';

export function Ensembles({ query: { cursor } }: { readonly query: Address['query'] }) {
  const { value, problem, isLoading, reload } = useData(`ensembles ${cursor}`, (client, signal) =>
    client.call('GET /ensembles', { query: { cursor } }, signal),
  );
  return (
    <>
      <h1>Ensembles</h1>
      {problem && <Failure problem={problem} onRetry={reload} />}
      {isLoading && <p class="empty">Loading...</p>}
      {value?.ensembles.length === 0 && (
        <p class="empty">
          There is no ensemble. Pass some to <code>createOrchestrator</code>, or create one over the API.
        </p>
      )}
      {value && value.ensembles.length > 0 && (
        <Table heads={['Name', 'State', 'Defined in', 'What it does', 'Version', 'Triggers']}>
          {value.ensembles.map((item) => (
            <Row key={item.name} item={item} />
          ))}
        </Table>
      )}
      <Pager path={['ensembles']} query={{ cursor }} next={value?.nextCursor} />
    </>
  );
}

function Row({ item: { name, active, source, description = '', version, definition } }: { readonly item: Item }) {
  return (
    <tr>
      <td>
        <RowLink path={['ensembles', name]}>{name}</RowLink>
      </td>
      <td>
        <Badge status={active ? 'active' : 'not active'} />
      </td>
      <td>{source}</td>
      <td class="clip">{oneLine(description)}</td>
      <td>
        <code>{version.slice(0, 8)}</code>
      </td>
      <td>{definition.trigger?.map(({ type }) => type).join(', ')}</td>
    </tr>
  );
}

const VIEWS = ['definition', 'flow', 'versions'] as const;
const TITLES = { definition: 'Definition', flow: 'Flow', versions: 'Versions that ran' } as const;

export function EnsembleScreen({ name, query }: { readonly name: string; readonly query: Address['query'] }) {
  const { can } = useApp();
  const [starts, setStarts] = useState<'real' | 'dry'>();
  const { value, problem, isLoading, reload } = useData(`ensemble ${name}`, (client, signal) =>
    client.call('GET /ensembles/:name', { name }, signal),
  );
  const view = VIEWS.find((one) => one === query.view) ?? 'definition';
  if (!value)
    return (
      <>
        <h1>{name}</h1>
        {isLoading && <p class="empty">Loading...</p>}
        {problem && <Failure problem={problem} onRetry={reload} />}
      </>
    );
  const { definition, active, description } = value;
  return (
    <>
      <div class="title">
        <h1>{name}</h1>
        <Badge status={active ? 'active' : 'not active'} />
        <span class="buttons">
          <a href={linkTo(['executions'], { ensemble: name })}>Its executions</a>
          {can('execute:ensembles') && active && (
            <>
              <button type="button" onClick={() => setStarts('dry')}>
                Dry run
              </button>
              <button type="button" class="primary" onClick={() => setStarts('real')}>
                Start
              </button>
            </>
          )}
        </span>
      </div>
      {description && <p>{visible(description)}</p>}
      <p class="hint">
        Version <code>{value.version.slice(0, 8)}</code>, defined in {value.source}
        {value.source === 'store' && (
          <>
            , changed <Instant at={value.updatedAt} />
          </>
        )}
      </p>
      <Triggers definition={definition} />
      <nav class="tabs" aria-label="Views">
        {VIEWS.filter((one) => one !== 'versions' || can('read:executions')).map((one) => (
          <a
            key={one}
            href={linkTo(['ensembles', name], { view: one })}
            aria-current={one === view ? 'page' : undefined}
          >
            {TITLES[one]}
          </a>
        ))}
      </nav>
      {view === 'definition' && <CodeLines text={toYaml(definition)} label="Definition" />}
      {view === 'flow' && <FlowView definition={definition} />}
      {view === 'versions' && <Versions item={value} chosen={query.with} />}
      {starts && (
        <StartDialog
          {...{ name, inputs: definition.inputs }}
          isDry={starts === 'dry'}
          onClose={() => setStarts(undefined)}
        />
      )}
    </>
  );
}

function Triggers({ definition: { trigger = [] } }: { readonly definition: EnsembleDefinition }) {
  if (trigger.length === 0) return null;
  return (
    <ul class="lines">
      {trigger.map((one) =>
        one.type === 'schedule' ? (
          <li key={`${one.cron} ${one.timezone}`}>
            <a href={linkTo(['schedules'])}>schedule</a> <code>{one.cron}</code> {one.timezone}
          </li>
        ) : (
          <li key={`${one.path} ${one.methods}`}>
            webhook <code>{(one.methods ?? ['POST']).join(', ')}</code> <code>{one.path}</code>{' '}
            {one.public ? 'public' : `checked by ${one.auth?.type ?? 'its auth'}`}
          </li>
        ),
      )}
    </ul>
  );
}

const READ_AT_ONCE = 250;

interface Ran {
  readonly version: string;
  /** The newest execution with it. */
  readonly id: string;
  readonly lastAt: number;
}

/** The versions of the newest executions, page by page, and what the present definition has in place of one of them. */
function Versions({ item, chosen }: { readonly item: Item; readonly chosen: string | undefined }) {
  const { name } = item;
  const [before, setBefore] = useState<readonly ExecutionPage[]>([]);
  const cursor = before.at(-1)?.nextCursor;
  const { value, problem, isLoading } = useData(`versions of ${name} ${cursor}`, (client, signal) =>
    client.call('GET /executions', { query: { ensemble: name, values: 'false', limit: READ_AT_ONCE, cursor } }, signal),
  );
  const pages = value ? [...before, value] : before;
  if (problem) return <Failure problem={problem} />;
  if (pages.length === 0) return <p class="empty">Loading...</p>;
  const ran = new Map<string, Ran>();
  for (const { id, version, createdAt } of pages.flatMap(({ executions }) => executions))
    if (!ran.has(version)) ran.set(version, { version, id, lastAt: createdAt });
  if (ran.size === 0) return <p class="empty">It has not run yet.</p>;
  const shown = [...ran.values()].find(({ version }) => version === chosen);
  return (
    <>
      <ul class="lines">
        {[...ran.values()].map(({ version, lastAt }) => (
          <li key={version}>
            <button
              type="button"
              class="quiet"
              aria-pressed={version === chosen}
              onClick={() => changeQuery({ with: version === chosen ? undefined : version })}
            >
              <code>{version.slice(0, 8)}</code>
            </button>{' '}
            ran last <Instant at={lastAt} /> {version === item.version && <span class="hint">the present version</span>}
          </li>
        ))}
      </ul>
      {shown && <VersionDiff item={item} ran={shown} />}
      <p class="hint">
        Choose a version to see what has changed since. These are the versions of the newest{' '}
        {count(
          pages.reduce((sum, page) => sum + page.executions.length, 0),
          'execution',
        )}
        .
      </p>
      {value?.nextCursor && (
        <button type="button" disabled={isLoading} onClick={() => setBefore(pages)}>
          Look further back
        </button>
      )}
    </>
  );
}

function VersionDiff({ item, ran }: { readonly item: Item; readonly ran: Ran }) {
  const { value, problem } = useData(`definition of ${ran.id}`, (client, signal) =>
    client.call('GET /executions/:id/definition', { id: ran.id }, signal),
  );
  if (problem) return <Failure problem={problem} />;
  if (!value) return <p class="empty">Loading...</p>;
  return (
    <>
      <p class="hint">
        Lines with - are those of {ran.version.slice(0, 8)}, lines with + those of the present version.
      </p>
      <CodeDiff
        before={toYaml(value.definition)}
        after={toYaml(item.definition)}
        label="Changes to the present version"
      />
    </>
  );
}

interface StartProps {
  readonly name: string;
  readonly inputs: EnsembleDefinition['inputs'];
  /** Only shows what would happen. */
  readonly isDry: boolean;
  onClose(): void;
}

/** Starts an ensemble with a form that is made from its `inputs`. */
function StartDialog({ name, inputs, isDry, onClose }: StartProps) {
  const { client } = useApp();
  const form = formOf(inputs);
  const [texts, setTexts] = useState(() => presets(form));
  const [json, setJson] = useState('{}');
  const isForm = form.fields.length > 0;
  const start = async () => {
    const input = isForm ? readFields(form, texts) : readJson(json, 'the input');
    const asked = isDry ? { name, body: { input }, query: { dryRun: 'true' } } : { name, body: { input, async: true } };
    const { executionId } = await client.call('POST /execute/ensemble/:name', asked);
    goTo(['executions', executionId]);
  };
  return (
    <Confirm
      title={isDry ? `Dry run of ${name}` : `Start ${name}`}
      action={isDry ? 'Show what would happen' : 'Start it'}
      onConfirm={start}
      onClose={onClose}
    >
      {isDry && <p>No operation runs and nothing is sent: what each step gives is made up from its types.</p>}
      <FormFields form={form} texts={texts} onTexts={setTexts} />
      {!isForm && <JsonField label="Input, as JSON" value={json} onValue={setJson} />}
    </Confirm>
  );
}
