/** The commands `definition` and `diff`. */

import type { Command } from 'commander';
import {
  type DefinitionOptions,
  type DefinitionPutOptions,
  type DefinitionRollbackOptions,
  type DefinitionTrafficOptions,
  listDefinitions,
  listVersions,
  putDefinitions,
  rollBackDefinition,
  showVersion,
  traffic,
} from './definition-command.ts';
import { type DiffOptions, diff } from './diff-command.ts';
import { type CommandDependencies, examples, place } from './service-commands.ts';

export function addDefinitions(program: Command, dependencies: CommandDependencies): void {
  const definition = program
    .command('definition')
    .description('ensembles that are stored at run time: stores them, shows their versions, rolls back');
  addChanges(definition, dependencies);
  addTraffic(definition, dependencies);
  addViews(definition, dependencies);
  addDiff(program, dependencies);
}

function addChanges(definition: Command, { output, host, end }: CommandDependencies): void {
  place(definition.command('put'))
    .argument('<files...>', 'definition files of ensembles, or folders that have nothing else')
    .option('--label <label>', 'the name of the version, such as v2')
    .option('-m, --message <text>', 'why there is a new version')
    .option('--commit <commit>', 'the commit that has the files')
    .option('--json', 'prints { ensembles }')
    .description('creates ensembles in a store or on a server, or replaces those that exist')
    .addHelpText(
      'after',
      examples(
        'ensemble definition put flows/order.yaml --label v2 --commit $(git rev-parse HEAD) --url https://jobs.example',
      ),
    )
    .action(async (files: string[], options: DefinitionPutOptions) =>
      end(await putDefinitions(files, options, output, host)),
    );
  place(definition.command('rollback'))
    .argument('<name>', 'name of the ensemble')
    .requiredOption('--to <version>', 'the label or the hash of a version')
    .option('-m, --message <text>', 'why')
    .option('--json', 'prints the ensemble')
    .description('makes an earlier version the newest one: new executions run it')
    .addHelpText('after', examples("ensemble definition rollback order --to v1 -m 'v2 charges twice'"))
    .action(async (name: string, options: DefinitionRollbackOptions) =>
      end(await rollBackDefinition(name, options, output, host)),
    );
}

function addTraffic(definition: Command, { output, host, end }: CommandDependencies): void {
  place(definition.command('traffic'))
    .argument('<name>', 'name of the ensemble')
    .argument('[version]', 'the version that new executions run: latest, a label or a hash')
    .option('--split <shares>', 'several versions with their shares in percent, such as v1=90,v2=10')
    .option('--by <expression>', 'what decides between the versions, such as ${input.userId} (default: the execution)')
    .option('--guard <limit>', "rolls back when this does not hold, such as 'failureRate < 2%'")
    .option('--steps <shares>', 'with a version and a guard: its shares in the rollout (default: 1,10,50,100)')
    .option('--every <duration>', 'the shortest time of a step (default: 10m)')
    .option('--shadow <version>', 'a version that runs dry after each execution, to list what differs')
    .option('-m, --message <text>', 'why')
    .option('--json', 'prints the traffic')
    .description('says which versions new executions run; without options, shows that')
    .addHelpText(
      'after',
      examples(
        'ensemble definition traffic order v1',
        "ensemble definition traffic order --split v1=90,v2=10 --by '${input.userId}' --guard 'failureRate < 2%'",
        'ensemble definition traffic order v1 --shadow v2',
      ),
    )
    .action(async (name: string, version: string | undefined, options: DefinitionTrafficOptions) =>
      end(await traffic([name, version], options, output, host)),
    );
}

function addViews(definition: Command, { output, host, end }: CommandDependencies): void {
  place(definition.command('list'))
    .option('--json', 'prints { ensembles }')
    .description('lists the ensembles, with their newest versions')
    .action(async (options: DefinitionOptions) => end(await listDefinitions(options, output, host)));
  place(definition.command('versions'))
    .argument('<name>', 'name of the ensemble')
    .option('--json', 'prints { versions }')
    .description('lists the versions that are kept, the newest first')
    .action(async (name: string, options: DefinitionOptions) => end(await listVersions(name, options, output, host)));
  place(definition.command('show'))
    .argument('<name>', 'name of the ensemble')
    .argument('[version]', 'latest, a label or a hash (default: latest)')
    .option('--json', 'prints the version with its definition')
    .description('prints the text of a version, or its definition as JSON if it was stored as an object')
    .action(async (name: string, version: string | undefined, options: DefinitionOptions) =>
      end(await showVersion([name, version], options, output, host)),
    );
}

function addDiff(program: Command, { output, host, end }: CommandDependencies): void {
  place(program.command('diff'))
    .argument('[ensemble]', 'name of an ensemble, or its definition file (default: all of the project)')
    .argument('[from]', 'what to compare: latest, a label, a hash, or the id of an execution (default: latest)')
    .argument('[to]', 'with what (default: the file of the project)')
    .option('--app <module>', 'module of an app that exports its options or its orchestrator')
    .option('--json', 'prints { ensembles: [{ ensemble, from, to, same, patch, running }] }')
    .description(
      'compares definitions of the project, of a store or server, and of what runs there; exits with 1 if they differ',
    )
    .addHelpText(
      'after',
      examples(
        'ensemble diff --url https://jobs.example',
        'ensemble diff order',
        'ensemble diff order v1 v2',
        'ensemble diff order exec_01K...',
      ),
    )
    .action(
      async (ensemble: string | undefined, from: string | undefined, to: string | undefined, options: DiffOptions) =>
        end(await diff([ensemble, from, to], options, output, host)),
    );
}
