/** The commands of `ensemble`, their options and their help. */

import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Command } from 'commander';
import { type CheckOptions, check } from './commands/check-command.ts';
import { addComponents } from './commands/component-commands.ts';
import { addDefinitions } from './commands/definition-commands.ts';
import { addDeliveries } from './commands/delivery-commands.ts';
import { init } from './commands/init-command.ts';
import { type OpenApiOptions, openApi } from './commands/openapi-command.ts';
import { type RunOptions, run } from './commands/run-command.ts';
import { type SchemaOptions, schema } from './commands/schema-command.ts';
import { addGraph, addServiceCommands, collect, examples, place } from './commands/service-commands.ts';
import { type TestOptions, test } from './commands/test-command.ts';
import { type ValidateOptions, validate } from './commands/validate-command.ts';
import type { Output } from './terminal/output.ts';

export interface ProgramHost {
  readonly cwd: string;
  readonly process: NodeJS.Process;
}

const APP =
  'module of an app that exports its options or its orchestrator: its scripts, senders and variables are used';

/**
 * Builds the command. For wrong usage, parsing prints a message on stderr and throws commander's `CommanderError`.
 *
 * @param end - receives the exit code of the command that ran
 */
export function createProgram(output: Output, { cwd, process }: ProgramHost, end: (exitCode: number) => void): Command {
  const version = packageVersion();
  const program = new Command('ensemble');
  program
    .description('Checks, runs and serves ensembles: workflows written as YAML.')
    .version(version, '-v, --version', 'prints the version')
    .helpOption('-h, --help', 'prints this help')
    .helpCommand('help [command]', 'prints the help of a command')
    .configureOutput({ writeOut: output.print, writeErr: output.say })
    .exitOverride();

  program
    .command('init')
    .argument('[dir]', 'folder to write to (default: this folder)')
    .description('writes a project that validates, runs and has a test')
    .addHelpText('after', examples('npx ensemble-orchestrator init my-project'))
    .action(async (dir: string | undefined) => end(await init(dir, version, output, cwd)));

  program
    .command('validate')
    .argument('[paths...]', 'definition files and project folders (default: the project in this folder)')
    .option('--dir <folder>', 'project folder: its scripts, agents and variables are used to check the files')
    .option('--app <module>', APP)
    .option('--types', 'also prints the type of each input, output and step, and what may be anything')
    .option('--json', 'prints { files: [{ file, issues }] }')
    .description('prints every problem of the definitions; exits with 1 if there is one')
    .addHelpText(
      'after',
      examples('ensemble validate', 'ensemble validate ensembles/order.yaml', 'ensemble validate ../shop --json'),
    )
    .action(async (paths: string[], options: ValidateOptions) => end(await validate(paths, options, output, cwd)));

  addRun(program, output, { cwd, process }, end);
  addTest(program, output, { cwd, process }, end);
  addCheck(program, output, { cwd, process }, end);
  addGraph(program, { output, host: { cwd, process }, end });
  const parts = { output, host: { cwd, process }, end };
  addServiceCommands(program, parts);
  addDeliveries(program, parts);
  addComponents(program, parts);
  addDefinitions(program, parts);

  program
    .command('schema')
    .option(
      '--dir <folder>',
      'project folder: its operations, and the names of its agents, scripts and ensembles, are offered too',
    )
    .description('prints the JSON Schema of definition files, for editors')
    .addHelpText('after', examples('ensemble schema --dir . > ensemble.schema.json'))
    .action(async (options: SchemaOptions) => end(await schema(options, output, cwd)));
  program
    .command('openapi')
    .option('--dir <folder>', 'project folder, whose config may name a brand (default: this folder)')
    .option('--base-path <path>', 'what precedes every path of the handler, such as /service')
    .description('prints the OpenAPI document of the API, for clients')
    .addHelpText('after', examples('ensemble openapi > openapi.json'))
    .action(async (options: OpenApiOptions) => end(await openApi(options, output, cwd)));
  pointToHelp(program, 'ensemble');
  return program.addHelpText(
    'after',
    examples('npx ensemble-orchestrator init my-project', 'ensemble validate', 'ensemble run hello', 'ensemble serve'),
  );
}

function addRun(program: Command, output: Output, host: ProgramHost, end: (exitCode: number) => void): void {
  place(program.command('run'))
    .argument('<ensemble>', 'name of an ensemble of the project, or a definition file')
    .option('--input <json>', 'the input: JSON, @file, or @- for standard input (default: {})')
    .option('--env <name>', 'a process variable that ${env.NAME} may read; repeatable', collect, [])
    .option('--id <id>', 'the id of the execution, in place of a generated one')
    .option('--tag <tag>', 'a tag of the execution; repeatable', collect, [])
    .option('--app <module>', APP)
    .option(
      '--signal <name=json>',
      'answers a `wait`: sent when the run waits for this signal; JSON, @file, or nothing for null; repeatable',
      collect,
      [],
    )
    .option('--json', "prints the execution's record, and no progress")
    .option('--watch', 'shows progress with --json too')
    .option('--dry', 'prints what would happen, and runs no operation: what a step gives is made up from its types')
    .option('--like <id>', 'with --dry: steps give what they gave in this execution, of the store or the server')
    .option('--run-scripts', 'with --dry: scripts and operations of the project run')
    .description('runs an ensemble; prints progress on stderr and its output on stdout')
    .addHelpText(
      'after',
      examples(
        `ensemble run order --input '{"id": 7}'`,
        'ensemble run order --input @order.json --env API_URL',
        'ensemble run ./order.yaml --json',
        `ensemble run approval --signal 'approved={"by": "Ada"}'`,
        `ensemble run order --dry --input '{"id": 7}'`,
      ),
    )
    .action(async (target: string, options: RunOptions) => end(await run(target, options, output, host)));
}

function addCheck(program: Command, output: Output, host: ProgramHost, end: (exitCode: number) => void): void {
  program
    .command('check')
    .option('--against <place>', 'a store (sqlite:FILE or postgres://...) or the URL of a running server')
    .option('--token <token>', 'token for that server (default: ENSEMBLE_TOKEN)')
    .option('--dir <folder>', 'project folder (default: this folder)')
    .option('--app <module>', APP)
    .option('--ensemble <name>', 'only executions of this ensemble')
    .option('--json', 'prints the result as JSON')
    .description(
      'checks each execution that has not ended against the definitions and scripts of this project, before they are deployed; exits with 1 if one would be stranded',
    )
    .addHelpText(
      'after',
      examples('ensemble check --against postgres://db.example/app', 'ensemble check --against https://jobs.example'),
    )
    .action(async (options: CheckOptions) => end(await check(options, output, host)));
}

function addTest(program: Command, output: Output, host: ProgramHost, end: (exitCode: number) => void): void {
  place(program.command('test'))
    .argument('[files...]', 'test files (default: all `*.test.yaml` of the project in this folder)')
    .option('--app <module>', APP)
    .option('--coverage', 'also prints the steps and branches that no test ran')
    .option('--reporter <name>', 'text, json or junit (default: text)')
    .option('--watch', 'runs the tests again after each change of the project')
    .option('--record <id>', 'prints a test file for an execution that has ended, of the store or the server')
    .option('--redact <field>', 'with --record: a field whose values are not written; repeatable', collect, [])
    .description('runs the tests of the test files, in virtual time; exits with 1 if one fails')
    .addHelpText(
      'after',
      examples(
        'ensemble test',
        'ensemble test ensembles/order.test.yaml --coverage',
        'ensemble test --record exec_01K... --redact email > ensembles/order.test.yaml',
      ),
    )
    .action(async (files: string[], options: TestOptions) => end(await test(files, options, output, host)));
}

/** After a usage error, names the help of the command that was called. @param name - with the names of its parent commands */
function pointToHelp(command: Command, name: string): void {
  command.showHelpAfterError(`Help: ${name} --help`);
  for (const inner of command.commands) pointToHelp(inner, `${name} ${inner.name()}`);
}

/** The version in this package's manifest, which is one folder above the built file and two above the source. */
function packageVersion(): string {
  for (const up of ['../', '../../']) {
    const path = fileURLToPath(new URL(`${up}package.json`, import.meta.url));
    if (existsSync(path)) return (JSON.parse(readFileSync(path, 'utf8')) as { readonly version: string }).version;
  }
  throw new Error('the package.json of ensemble-orchestrator is missing; install the package again');
}
