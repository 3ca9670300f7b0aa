/** The command `component`. */

import type { Command } from 'commander';
import { type CompareOptions, compareComponent } from './compare-command.ts';
import {
  addComponent,
  type ComponentAddOptions,
  type ComponentDeployOptions,
  type ComponentMoveOptions,
  type ComponentOptions,
  type ComponentShowOptions,
  type ComponentTagOptions,
  deployComponent,
  diffComponent,
  listTags,
  rollbackComponent,
  showComponent,
  showStatus,
  tagComponent,
  undeployComponent,
} from './component-command.ts';
import { type CommandDependencies, collect, examples, place } from './service-commands.ts';

export function addComponents(program: Command, dependencies: CommandDependencies): void {
  const component = program
    .command('component')
    .description('prompts, templates, configs and queries: versions, environments, differences');
  addChanges(component, dependencies);
  addDeployments(component, dependencies);
  addViews(component, dependencies);
  addCompare(component, dependencies);
}

function addChanges(component: Command, { output, host, end }: CommandDependencies): void {
  place(component.command('add'))
    .argument('<name>', 'name of the component')
    .argument('<file>', 'file with its text, in the project')
    .option('--kind <kind>', 'prompt, template, config or query (default: by the folder, such as prompts/)')
    .option('--metadata <json>', 'model, variables and more: JSON, @file, or @- for standard input')
    .option('--replace', 'replaces the file and the metadata of a component that is registered')
    .option('--json', 'prints the component')
    .description('registers a component: in components.yaml of a repository, in a store, or on a server')
    .addHelpText('after', examples('ensemble component add greet prompts/greet.md'))
    .action(async (name: string, file: string, options: ComponentAddOptions) =>
      end(await addComponent([name, file], options, output, host)),
    );
  place(component.command('tag'))
    .argument('<name>', 'name of the component')
    .argument('<version>', 'the new version, such as v1.0.0')
    .option('-m, --message <text>', 'why there is a new version')
    .option('--file <file>', 'another file with its text')
    .option('--json', 'prints the version')
    .description('creates a version, which never changes; in a repository, from the committed file')
    .addHelpText('after', examples(`ensemble component tag greet v1.1.0 -m 'one line'`))
    .action(async (name: string, version: string, options: ComponentTagOptions) =>
      end(await tagComponent([name, version], options, output, host)),
    );
}

function addDeployments(component: Command, { output, host, end }: CommandDependencies): void {
  place(component.command('deploy'))
    .argument('<name>', 'name of the component')
    .argument('[version]', 'the version, such as v1.0.0')
    .requiredOption('--to <environment>', 'the environment, such as production, or latest')
    .option('--split <shares>', 'several versions with their shares in percent, such as v1.2.0=90,v1.3.0=10')
    .option('--by <expression>', 'what decides between the versions, such as ${input.userId} (default: the execution)')
    .option('--guard <limit>', "rolls the version out in steps while this holds, such as 'failureRate < 2%'")
    .option('--steps <shares>', 'its shares in the rollout (default: 1,10,50,100)')
    .option('--every <duration>', 'the shortest time of a step (default: 10m)')
    .option('-m, --message <text>', 'why')
    .option('--json', 'prints the deployment')
    .description('deploys a version to an environment; it counts at once, without a restart')
    .addHelpText(
      'after',
      examples(
        'ensemble component deploy greet v1.1.0 --to production',
        "ensemble component deploy greet --to production --split v1.0.0=90,v1.1.0=10 --by '${input.userId}'",
        "ensemble component deploy greet v1.1.0 --to production --guard 'failureRate < 2%' --every 10m",
      ),
    )
    .action(async (name: string, version: string | undefined, options: ComponentDeployOptions) =>
      end(await deployComponent([name, version], options, output, host)),
    );
  place(component.command('rollback'))
    .argument('<name>', 'name of the component')
    .requiredOption('--to <environment>', 'the environment')
    .option('--from <version>', 'the version to roll back; another one that is deployed by now stays')
    .option('-m, --message <text>', 'why')
    .option('--json', 'prints the deployment')
    .description('deploys the version that the environment had before')
    .action(async (name: string, options: ComponentMoveOptions & { readonly from?: string }) =>
      end(await rollbackComponent(name, options, output, host)),
    );
  place(component.command('undeploy'))
    .argument('<name>', 'name of the component')
    .requiredOption('--from <environment>', 'the environment')
    .option('--json', 'prints { environment, undeployed }')
    .description('takes the version of an environment away')
    .action(async (name: string, options: ComponentOptions & { readonly from: string }) =>
      end(await undeployComponent(name, options, output, host)),
    );
}

function addViews(component: Command, { output, host, end }: CommandDependencies): void {
  place(component.command('status'))
    .argument('[name]', 'name of the component (default: all)')
    .option('--json', 'prints the component with its deployments')
    .description('what each environment has, since when, by whom, and what it had before')
    .action(async (name: string | undefined, options: ComponentOptions) =>
      end(await showStatus(name, options, output, host)),
    );
  place(component.command('tags'))
    .argument('<name>', 'name of the component')
    .option('--json', 'prints { versions }')
    .description('lists the versions, the highest first')
    .action(async (name: string, options: ComponentOptions) => end(await listTags(name, options, output, host)));
  place(component.command('show'))
    .argument('<name@ref>', 'name and version, latest or environment, such as greet@production')
    .option('--key <text>', 'decides between the versions of a split')
    .option('--json', 'prints the version with its text and metadata')
    .description('prints the text of a version')
    .addHelpText('after', examples('ensemble component show greet@production'))
    .action(async (name: string, options: ComponentShowOptions) =>
      end(await showComponent(name, options, output, host)),
    );
  place(component.command('diff'))
    .argument('<name>', 'name of the component')
    .argument('<a>', 'a version, latest or environment')
    .argument('<b>', 'another one')
    .option('--json', 'prints { from, to, text, metadata }')
    .description('prints the difference of two versions as a patch')
    .addHelpText('after', examples('ensemble component diff greet production v1.1.0'))
    .action(async (name: string, a: string, b: string, options: ComponentOptions) =>
      end(await diffComponent([name, a, b], options, output, host)),
    );
}

function addCompare(component: Command, { output, host, end }: CommandDependencies): void {
  place(component.command('compare'))
    .argument('<name>', 'name of a prompt')
    .argument('<a>', 'a version, latest or environment')
    .argument('<b>', 'another one')
    .requiredOption('--inputs <file>', 'inputs of the agent, one in JSON on each line; - for standard input')
    .option('--provider <name>', 'a model provider of the project (default: the one of the prompt)')
    .option('--model <name>', 'a model (default: the one of the prompt)')
    .option('--env <name>', 'a process variable that ${env.NAME} may read; repeatable', collect, [])
    .option('--json', 'prints { cases }')
    .description('asks the models of the project with two versions of a prompt, and prints the answers side by side')
    .addHelpText('after', examples('ensemble component compare greet production v1.1.0 --inputs cases.jsonl'))
    .action(async (name: string, a: string, b: string, options: CompareOptions) =>
      end(await compareComponent([name, a, b], options, output, host)),
    );
}
