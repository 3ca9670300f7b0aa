/** The commands of `ensemble` that serve a project, and those that use a store or a server. */

import type { Command } from 'commander';
import type { PlaceOptions } from '../service/open-service.ts';
import type { ServiceHost } from '../service/service.ts';
import type { Output } from '../terminal/output.ts';
import { type AuditCommandOptions, listAudit } from './audit-command.ts';
import {
  type ExecutionListOptions,
  type ExecutionShowOptions,
  listExecutions,
  showExecution,
  watch,
} from './execution-command.ts';
import {
  type ChangeCommandOptions,
  type CompleteCommandOptions,
  cancelExecution,
  completeStep,
  type MoveCommandOptions,
  moveExecutions,
  type PauseCommandOptions,
  pauseExecutions,
  type RetryCommandOptions,
  retryExecution,
  type SignalCommandOptions,
  signalExecution,
} from './execution-control-command.ts';
import { exportExecution } from './export-command.ts';
import { type GraphOptions, graph } from './graph-command.ts';
import { type ServeOptions, serve } from './serve-command.ts';
import {
  createToken,
  listTokens,
  newToken,
  revokeToken,
  type TokenCreateOptions,
  type TokenListOptions,
  type TokenNewOptions,
} from './token-command.ts';
import { listWebhooks, sendWebhook, type WebhookListOptions, type WebhookSendOptions } from './webhook-command.ts';

/** The parts of the process that commands need. */
export interface CommandDependencies {
  readonly output: Output;
  readonly host: ServiceHost;
  /** Receives the exit code of the command that ran. */
  readonly end: (exitCode: number) => void;
}

export function addServiceCommands(program: Command, dependencies: CommandDependencies): void {
  addServe(program, dependencies);
  addTokens(program, dependencies);
  addExecutions(program, dependencies);
  addAudit(program, dependencies);
  addWebhooks(program, dependencies);
}

export function addGraph(program: Command, { output, host, end }: CommandDependencies): void {
  const command = program
    .command('graph')
    .argument('[ensemble]', 'name of an ensemble of the project, or a definition file');
  place(command)
    .option('--execution <id>', 'marks the state of this execution; without a name, draws its own definition')
    .option('--direction <direction>', 'TD (top down) or LR (left to right)', 'TD')
    .description('prints the flow of an ensemble as a Mermaid flowchart')
    .addHelpText(
      'after',
      examples(
        'ensemble graph order > order.mmd',
        'ensemble graph --execution exec_01K... --url http://127.0.0.1:3000',
      ),
    )
    .action(async (target: string | undefined, options: GraphOptions) =>
      end(await graph(target, options, output, host)),
    );
}

function addServe(program: Command, { output, host, end }: CommandDependencies): void {
  program
    .command('serve')
    .argument('[dir]', 'project folder (default: this folder)')
    .option('--port <number>', 'port to listen on; 0 for any free port', '3000')
    .option('--host <address>', 'address to listen on; 0.0.0.0 for all addresses of this machine', '127.0.0.1')
    .option(
      '--storage <store>',
      'memory, sqlite:FILE or postgres://... (default: sqlite:.ensemble/data.sqlite in the project)',
    )
    .option('--env <name>', 'a process variable that ${env.NAME} may read; repeatable', collect, [])
    .option('--dir <folder>', 'project folder, in place of the argument')
    .option('--watch', 'loads definitions and scripts again when files of the project change')
    .option('--dashboard', 'serves the dashboard at /dashboard/; it asks for an API token')
    .description('serves a project over HTTP; prints a first token if the store has none and ENSEMBLE_TOKEN holds none')
    .addHelpText(
      'after',
      examples('ensemble serve --watch', 'ensemble serve ../shop --port 8080 --storage sqlite:/var/lib/shop.sqlite'),
    )
    .action(async (dir: string | undefined, options: ServeOptions) => end(await serve(dir, options, output, host)));
}

function addTokens(program: Command, { output, host, end }: CommandDependencies): void {
  const token = program.command('token').description('creates, makes, lists and revokes API tokens');
  place(token.command('create'))
    .requiredOption('--name <name>', 'a label')
    .requiredOption('--scope <scope...>', 'its scopes, such as execute:ensembles; admin for all')
    .option('--expires-in <seconds>', 'its lifetime (default: never expires)')
    .option('--plan <plan>', 'free, pro or enterprise (default: that of the config, or free)')
    .option('--json', 'prints the token object')
    .description('creates a token; prints only its value on stdout')
    .addHelpText(
      'after',
      examples(
        'ensemble token create --name ci --scope execute:ensembles read:executions',
        'ensemble token create --name week --scope admin --expires-in 604800 --url http://127.0.0.1:3000',
      ),
    )
    .action(async (options: TokenCreateOptions) => end(await createToken(options, output, host)));
  token
    .command('new')
    .option('--dir <folder>', 'project folder, whose config may have a brand (default: this folder)')
    .option('--json', 'prints { token, hash }')
    .description('makes a value for a token, and stores nothing; prints the value on stdout, and its hash on stderr')
    .addHelpText('after', examples('export ENSEMBLE_TOKEN=$(ensemble token new)'))
    .action(async (options: TokenNewOptions) => end(await newToken(options, output, host)));
  place(token.command('list'))
    .option('--json', 'prints { tokens }')
    .description('lists the tokens, oldest first, without their values')
    .action(async (options: TokenListOptions) => end(await listTokens(options, output, host)));
  place(token.command('revoke'))
    .argument('<id>', 'id of the token, from the list')
    .option('--json', 'prints { id, revoked }')
    .description('revokes a token; it is refused from then on')
    .action(async (id: string, options: TokenListOptions) => end(await revokeToken(id, options, output, host)));
}

function addWebhooks(program: Command, { output, host, end }: CommandDependencies): void {
  const webhook = program
    .command('webhook')
    .description('lists the webhooks of a project, and calls one as its sender would');
  webhook
    .command('list')
    .option('--dir <folder>', 'project folder (default: this folder)')
    .option('--json', 'prints { webhooks }')
    .description('lists the triggers of type webhook: path, methods, credentials, ensemble and warnings')
    .action(async (options: WebhookListOptions) => end(await listWebhooks(options, output, host)));
  webhook
    .command('send')
    .argument('<path>', 'path of the trigger, such as /webhooks/orders; it may have a query')
    .option('--body <file>', 'file with the body; - for stdin (default: an empty object)')
    .option('--method <method>', 'method (default: the first of the trigger)')
    .option('--type <type>', 'Content-Type (default: application/json)')
    .option('--header <name: value>', 'another header; repeatable', collect, [])
    .option('--url <url>', 'the server (default: ENSEMBLE_URL, or http://127.0.0.1:3000)')
    .option('--dir <folder>', 'project folder, which has the trigger and its secret (default: this folder)')
    .option('--env <name>', 'a process variable that ${env.NAME} may read; repeatable', collect, [])
    .option('--json', 'prints { status, body }')
    .description(
      "signs a body with the trigger's secret, and sends it to a running server; exit code 1 unless it is accepted",
    )
    .addHelpText('after', examples('ensemble webhook send /webhooks/orders --body order.json'))
    .action(async (path: string, options: WebhookSendOptions) => end(await sendWebhook(path, options, output, host)));
}

function addExecutions(program: Command, { output, host, end }: CommandDependencies): void {
  const execution = program.command('execution').description('shows, cancels, retries and signals executions');
  place(execution.command('list'))
    .option('--ensemble <name>', 'only executions of this ensemble')
    .option('--status <status>', 'only executions with this status, such as failed')
    .option('--parent <id>', 'only executions that the steps of this execution started')
    .option('--retry-of <id>', 'only the execution that retries this one')
    .option('--tag <tag>', 'only executions with this tag')
    .option('--since <instant>', 'only executions from then on: 2h (ago), 2026-01-31T09:00:00Z or Unix ms')
    .option('--until <instant>', 'only executions before then')
    .option('--search <text>', 'only executions whose id, or one of whose tags, begins with this text')
    .option('--unresolved', 'only executions that failed or timed out, and that were not retried')
    .option('--error <code>', 'only executions that ended with an error of this code, such as TIMEOUT')
    .option('--oldest', 'lists the oldest first')
    .option('--limit <number>', 'the largest number of executions', '20')
    .option('--json', 'prints { executions }, without their agents')
    .description('lists executions, newest first')
    .addHelpText(
      'after',
      examples(
        'ensemble execution list --status failed --limit 5',
        'ensemble execution list --tag customer=7 --since 2d',
        'ensemble execution list --error TIMEOUT --oldest',
      ),
    )
    .action(async (options: ExecutionListOptions) => end(await listExecutions(options, output, host)));
  place(execution.command('show'))
    .argument('<id>', 'id of the execution')
    .option('--steps', 'shows the steps of every kind instead of the agents')
    .option('--json', 'prints the record')
    .description('shows one execution: its times, its agents, its output')
    .action(async (id: string, options: ExecutionShowOptions) => end(await showExecution(id, options, output, host)));
  place(execution.command('watch'))
    .argument('<id>', 'id of the execution')
    .option('--json', 'prints each event as a line of JSON')
    .description('follows one execution until it ends; exits with 1 if it did not complete')
    .addHelpText('after', examples('ensemble execution watch exec_01K... --url http://127.0.0.1:3000'))
    .action(async (id: string, options: ExecutionShowOptions) => end(await watch(id, options, output, host)));
  place(execution.command('export'))
    .argument('<id>', 'id of the execution')
    .description('prints all that is stored of one execution as JSON, for `replay` of the testing kit')
    .addHelpText('after', examples('ensemble execution export exec_01K... > order.history.json'))
    .action(async (id: string, options: PlaceOptions) => end(await exportExecution(id, options, output, host)));
  addExecutionControls(execution, { output, host, end });
}

function addPauses(execution: Command, { output, host, end }: CommandDependencies): void {
  for (const action of ['pause', 'resume'] as const)
    place(execution.command(action))
      .argument('[id]', 'id of one execution')
      .option('--ensemble <name>', 'all executions of an ensemble, also those that are started later')
      .option('--all', 'all executions')
      .option('--reason <text>', REASON)
      .option('--json', 'prints the record, or how many were changed')
      .description(
        action === 'pause'
          ? 'pauses one execution, an ensemble, or everything: nothing of it runs until it is resumed'
          : 'ends the pause of one execution, of an ensemble, or of everything',
      )
      .action(async (id: string | undefined, options: PauseCommandOptions) =>
        end(await pauseExecutions(id, options, output, host, action)),
      );
}

function addExecutionControls(execution: Command, { output, host, end }: CommandDependencies): void {
  place(execution.command('cancel'))
    .argument('<id>', 'id of the execution')
    .option('--reason <text>', REASON)
    .option('--json', 'prints the record')
    .description('cancels one execution: at its next step, or at once if it waits or is queued')
    .action(async (id: string, options: ChangeCommandOptions) => end(await cancelExecution(id, options, output, host)));
  addPauses(execution, { output, host, end });
  place(execution.command('signal'))
    .argument('<id>', 'id of the execution')
    .argument('<name>', 'name of the signal, from the step `wait`')
    .option('--payload <json>', 'the payload: JSON, @file, or @- for standard input (default: null)')
    .option('--idempotency-key <key>', 'a second signal with the same key changes nothing')
    .option('--json', 'prints the record')
    .description('sends a signal to an execution: its first `wait` for that name takes it, now or later')
    .addHelpText('after', examples(`ensemble execution signal exec_01K... approved --payload '{"by": "Ada"}'`))
    .action(async (id: string, name: string, options: SignalCommandOptions) =>
      end(await signalExecution(id, name, options, output, host)),
    );
  place(execution.command('move'))
    .argument('[id]', 'id of the execution (default: all that match the filters and have not ended)')
    .option('--ensemble <name>', 'only executions of this ensemble')
    .option('--status <status>', 'queued, waiting or running')
    .option('--tag <tag>', 'only executions with this tag')
    .option('--search <text>', 'only executions whose id or tag begins with this')
    .option(
      '--to <version>',
      'latest, or the label or the hash of a version (default: latest, if --map names no versions)',
    )
    .option(
      '--map <old=new>',
      'an agent or a signal that has another name now, or a version whose executions get another one; repeatable',
      collect,
      [],
    )
    .option('--dry', 'only says what would be moved')
    .option('--json', 'prints the result as JSON')
    .description('gives executions another definition of their ensemble, if what is recorded of them replays in it')
    .addHelpText(
      'after',
      examples('ensemble execution move --ensemble order --dry', 'ensemble execution move exec_01K...'),
    )
    .action(async (id: string | undefined, options: MoveCommandOptions) =>
      end(await moveExecutions(id, options, output, host)),
    );
  addRetries(execution, { output, host, end });
}

function addRetries(execution: Command, { output, host, end }: CommandDependencies): void {
  place(execution.command('retry'))
    .argument('<id>', 'id of an execution that failed, timed out or was cancelled, or of one that it retries')
    .option(
      '--new-keys',
      'gives the calls other idempotency keys, for a peer that has stored a failure under the old ones',
    )
    .option('--input <json>', 'replaces the input: JSON, @file, or @- for standard input')
    .option('--from <step>', 'runs again from this step on: its key, such as flow[2], or the name of its result')
    .option('--definition <version>', 'latest, or the label or the hash of a version (default: its own)')
    .option('--reason <text>', REASON)
    .option('--json', 'prints the record')
    .description(
      'starts the next execution, once, with the results of the steps that succeeded; prints its id on stdout',
    )
    .addHelpText('after', examples('ensemble execution watch $(ensemble execution retry exec_01K...)'))
    .action(async (id: string, options: RetryCommandOptions) => end(await retryExecution(id, options, output, host)));
  place(execution.command('complete'))
    .argument('<id>', 'id of an execution that waits, is queued or paused, or that failed, timed out or was cancelled')
    .argument('<step>', 'an agent or a child execution: its key, such as flow[2], or the name of its result')
    .option('--output <json>', 'its result: JSON, @file, or @- for standard input (default: null)')
    .option('--reason <text>', REASON)
    .option('--json', 'prints the record')
    .description('gives a step its result by hand; prints the id of the execution that continues on stdout')
    .addHelpText(
      'after',
      examples(`ensemble execution complete exec_01K... charge --output '{"id": 7}' --reason "paid by hand"`),
    )
    .action(async (id: string, key: string, options: CompleteCommandOptions) =>
      end(await completeStep(id, key, options, output, host)),
    );
}

function addAudit(program: Command, { output, host, end }: CommandDependencies): void {
  place(program.command('audit'))
    .option('--since <instant>', 'only entries from then on: 2h (ago), 2026-01-31T09:00:00Z or Unix ms')
    .option('--until <instant>', 'only entries before then')
    .option('--action <action>', 'only entries of this action, such as execution.retry')
    .option('--execution <id>', 'only entries of this execution')
    .option('--by <name>', 'only entries of this token: its name or its id')
    .option('--limit <number>', 'the largest number of entries', '20')
    .option('--all', 'all entries, without a limit')
    .option('--json', 'prints each entry as a line of JSON')
    .description('lists who changed which executions, newest first')
    .addHelpText('after', examples('ensemble audit --since 2d', 'ensemble audit --all --json > audit.jsonl'))
    .action(async (options: AuditCommandOptions) => end(await listAudit(options, output, host)));
}

const REASON = 'why, for the audit log';

/** The options that name the store or the server. */
export function place(command: Command): Command {
  return command
    .option('--dir <folder>', 'project folder, whose store is used (default: this folder)')
    .option('--storage <store>', 'another store: sqlite:FILE or postgres://...')
    .option('--url <url>', 'a running server instead (default: ENSEMBLE_URL, if no store is named)')
    .option('--token <token>', 'token for that server (default: ENSEMBLE_TOKEN)');
}

/** Reads an option that may be repeated. */
export function collect(value: string, before: readonly string[]): string[] {
  return [...before, value];
}

/** The end of a command's help. */
export function examples(...lines: readonly string[]): string {
  return `\nExamples:\n${lines.map((line) => `  ${line}`).join('\n')}`;
}
