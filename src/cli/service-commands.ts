/** The commands of `ensemble` that serve a project, and those that ask a store or a server. */

import type { Command } from 'commander';
import {
  type ExecutionListOptions,
  type ExecutionShowOptions,
  listExecutions,
  showExecution,
  watch,
} from './execution-command.ts';
import {
  cancelExecution,
  retryExecution,
  type SignalCommandOptions,
  signalExecution,
} from './execution-control-command.ts';
import { type GraphOptions, graph } from './graph-command.ts';
import type { Output } from './output.ts';
import { type ServeOptions, serve } from './serve-command.ts';
import type { ServiceHost } from './service.ts';
import {
  createToken,
  listTokens,
  revokeToken,
  type TokenCreateOptions,
  type TokenListOptions,
} from './token-command.ts';

/** What commands need of the process that they run in. */
export interface CommandParts {
  readonly output: Output;
  readonly host: ServiceHost;
  /** Told the exit code of the command that ran. */
  readonly end: (exitCode: number) => void;
}

export function addServiceCommands(program: Command, parts: CommandParts): void {
  addServe(program, parts);
  addTokens(program, parts);
  addExecutions(program, parts);
}

export function addGraph(program: Command, { output, host, end }: CommandParts): void {
  const command = program
    .command('graph')
    .argument('[ensemble]', 'name of an ensemble of the project, or a definition file');
  place(command)
    .option('--execution <id>', 'marks how this execution went; without a name, draws the definition that it runs')
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

function addServe(program: Command, { output, host, end }: CommandParts): void {
  program
    .command('serve')
    .argument('[dir]', 'project folder (default: this one)')
    .option('--port <number>', 'port to listen on; 0 for any that is free', '3000')
    .option('--host <address>', 'address to listen on; 0.0.0.0 for all of this machine', '127.0.0.1')
    .option(
      '--storage <store>',
      'memory, sqlite:FILE or postgres://... (default: sqlite:.ensemble/data.sqlite in the project)',
    )
    .option('--env <name>', 'a process variable that ${env.NAME} may read; may be given again', collect, [])
    .option('--dir <folder>', 'the project folder, by name')
    .description('serves a project over HTTP; on a store without tokens it prints a first one')
    .addHelpText(
      'after',
      examples('ensemble serve', 'ensemble serve ../shop --port 8080 --storage sqlite:/var/lib/shop.sqlite'),
    )
    .action(async (dir: string | undefined, options: ServeOptions) => end(await serve(dir, options, output, host)));
}

function addTokens(program: Command, { output, host, end }: CommandParts): void {
  const token = program.command('token').description('makes, lists and revokes API tokens');
  place(token.command('create'))
    .requiredOption('--name <name>', 'a label')
    .requiredOption('--scope <scope...>', 'what it may do, such as execute:ensembles, or admin for all')
    .option('--expires-in <seconds>', 'how long it is good for (default: for ever)')
    .option('--plan <plan>', 'free, pro or enterprise (default: free)')
    .option('--json', 'prints the token object')
    .description('makes a token; its value alone is printed on stdout')
    .addHelpText(
      'after',
      examples(
        'ensemble token create --name ci --scope execute:ensembles read:executions',
        'ensemble token create --name week --scope admin --expires-in 604800 --url http://127.0.0.1:3000',
      ),
    )
    .action(async (options: TokenCreateOptions) => end(await createToken(options, output, host)));
  place(token.command('list'))
    .option('--json', 'prints { tokens }')
    .description('lists the tokens, oldest first; never their values')
    .action(async (options: TokenListOptions) => end(await listTokens(options, output, host)));
  place(token.command('revoke'))
    .argument('<id>', 'id of the token, as the list has it')
    .option('--json', 'prints { id, revoked }')
    .description('deletes a token; from then on it is refused')
    .action(async (id: string, options: TokenListOptions) => end(await revokeToken(id, options, output, host)));
}

function addExecutions(program: Command, { output, host, end }: CommandParts): void {
  const execution = program.command('execution').description('shows what ran and how it went, stops and retries it');
  place(execution.command('list'))
    .option('--ensemble <name>', 'only of this ensemble')
    .option('--status <status>', 'only of this status, such as failed')
    .option('--parent <id>', 'only those that the steps of this execution started')
    .option('--limit <number>', 'how many at most', '20')
    .option('--json', 'prints { executions }, without their agents')
    .description('lists executions, newest first')
    .addHelpText('after', examples('ensemble execution list --status failed --limit 5'))
    .action(async (options: ExecutionListOptions) => end(await listExecutions(options, output, host)));
  place(execution.command('show'))
    .argument('<id>', 'id of the execution')
    .option('--json', 'prints the record')
    .description('shows one execution: its times, its agents, its output')
    .action(async (id: string, options: ExecutionShowOptions) => end(await showExecution(id, options, output, host)));
  place(execution.command('watch'))
    .argument('<id>', 'id of the execution')
    .option('--json', 'prints each event as a line of JSON')
    .description('follows one execution until it ends; exits with 1 when it did not complete')
    .addHelpText('after', examples('ensemble execution watch exec_01K... --url http://127.0.0.1:3000'))
    .action(async (id: string, options: ExecutionShowOptions) => end(await watch(id, options, output, host)));
  place(execution.command('cancel'))
    .argument('<id>', 'id of the execution')
    .option('--json', 'prints the record')
    .description('stops one execution: at its next step, or at once when it waits or is queued')
    .action(async (id: string, options: ExecutionShowOptions) => end(await cancelExecution(id, options, output, host)));
  place(execution.command('signal'))
    .argument('<id>', 'id of the execution')
    .argument('<name>', 'name of the signal, as the step `wait` has it')
    .option('--payload <json>', 'what it carries: JSON, @file, or @- for standard input (default: null)')
    .option('--idempotency-key <key>', 'the same key again changes nothing')
    .option('--json', 'prints the record')
    .description('gives an execution a signal: the first `wait` for it goes on, now or when the flow comes to it')
    .addHelpText('after', examples(`ensemble execution signal exec_01K... approved --payload '{"by": "Ada"}'`))
    .action(async (id: string, name: string, options: SignalCommandOptions) =>
      end(await signalExecution(id, name, options, output, host)),
    );
  place(execution.command('retry'))
    .argument('<id>', 'id of an execution that failed, timed out or was cancelled')
    .option('--json', "prints the new execution's record")
    .description('makes a new execution with the results of the steps that succeeded; prints its id on stdout')
    .addHelpText('after', examples('ensemble execution watch $(ensemble execution retry exec_01K...)'))
    .action(async (id: string, options: ExecutionShowOptions) => end(await retryExecution(id, options, output, host)));
}

/** The options that say which store, or which server, is asked. */
function place(command: Command): Command {
  return command
    .option('--dir <folder>', 'project folder, whose store is asked (default: this one)')
    .option('--storage <store>', 'another store: sqlite:FILE or postgres://...')
    .option('--url <url>', 'a running server instead (default: ENSEMBLE_URL, where no store is named)')
    .option('--token <token>', 'token for that server (default: ENSEMBLE_TOKEN)');
}

function collect(value: string, before: readonly string[]): string[] {
  return [...before, value];
}

function examples(...lines: readonly string[]): string {
  return `\nExamples:\n${lines.map((line) => `  ${line}`).join('\n')}`;
}
