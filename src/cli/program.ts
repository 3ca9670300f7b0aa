/** The commands of `ensemble`, their options and their help. */

import { Command } from 'commander';
import { init } from './init-command.ts';
import type { Output } from './output.ts';
import { packageVersion } from './package-version.ts';
import { type RunOptions, run } from './run-command.ts';
import { addGraph, addServiceCommands } from './service-commands.ts';
import { definitionSchema } from './start.ts';
import { printJson } from './text.ts';
import { type ValidateOptions, validate } from './validate-command.ts';

export interface ProgramHost {
  readonly cwd: string;
  readonly process: NodeJS.Process;
}

/**
 * Builds the command. Parsing throws commander's `CommanderError` for wrong usage, after it was explained on stderr.
 *
 * @param end - told the exit code of the command that ran
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
    .argument('[dir]', 'folder to write to (default: this one)')
    .description('writes a project that validates, runs and has a test')
    .addHelpText('after', examples('ensemble init my-project'))
    .action(async (dir: string | undefined) => end(await init(dir, version, output, cwd)));

  program
    .command('validate')
    .argument('[paths...]', 'definition files and project folders (default: the project in this folder)')
    .option('--dir <folder>', 'project folder; files are checked against its scripts, agents and variables')
    .option('--json', 'prints { files: [{ file, issues }] }')
    .description('prints every problem of definitions; exits with 1 when there are any')
    .addHelpText(
      'after',
      examples('ensemble validate', 'ensemble validate ensembles/order.yaml', 'ensemble validate ../shop --json'),
    )
    .action(async (paths: string[], options: ValidateOptions) => end(await validate(paths, options, output, cwd)));

  program
    .command('run')
    .argument('<ensemble>', 'name of an ensemble of the project, or a definition file')
    .option('--input <json>', 'the input: JSON, @file, or @- for standard input (default: {})')
    .option('--env <name>', 'a process variable that ${env.NAME} may read; may be given again', collect, [])
    .option('--dir <folder>', 'project folder (default: this one)')
    .option('--json', "prints the execution's record, and no progress")
    .option('--watch', 'shows progress with --json too')
    .description('runs an ensemble; prints progress on stderr and its output on stdout')
    .addHelpText(
      'after',
      examples(
        `ensemble run order --input '{"id": 7}'`,
        'ensemble run order --input @order.json --env API_URL',
        'ensemble run ./order.yaml --json',
      ),
    )
    .action(async (target: string, options: RunOptions) => end(await run(target, options, output, { cwd, process })));

  addGraph(program, { output, host: { cwd, process }, end });
  addServiceCommands(program, { output, host: { cwd, process }, end });

  program
    .command('schema')
    .description('prints the JSON Schema of definition files, for editors')
    .addHelpText('after', examples('ensemble schema > ensemble.schema.json'))
    .action(() => {
      output.print(`${printJson(definitionSchema())}\n`);
      end(0);
    });
  pointToHelp(program, 'ensemble');
  return program.addHelpText(
    'after',
    examples('ensemble init my-project', 'ensemble validate', 'ensemble run hello', 'ensemble serve'),
  );
}

/** What a command is written like is said by its own help. @param name - with those of the commands that it belongs to */
function pointToHelp(command: Command, name: string): void {
  command.showHelpAfterError(`Help: ${name} --help`);
  for (const inner of command.commands) pointToHelp(inner, `${name} ${inner.name()}`);
}

function collect(value: string, before: readonly string[]): string[] {
  return [...before, value];
}

function examples(...lines: readonly string[]): string {
  return `\nExamples:\n${lines.map((line) => `  ${line}`).join('\n')}`;
}
