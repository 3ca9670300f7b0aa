/** The commands `delivery` and `listen`. */

import type { Command } from 'commander';
import {
  type DeliveryFilterOptions,
  type DeliveryListOptions,
  type DeliveryOptions,
  listDeliveries,
  listReceivers,
  redeliver,
  resumeReceiver,
  showDelivery,
} from './delivery-command.ts';
import { type ListenOptions, listen } from './listen-command.ts';
import { type CommandDependencies, examples, place } from './service-commands.ts';

export function addDeliveries(program: Command, { output, host, end }: CommandDependencies): void {
  const delivery = program.command('delivery').description('lists, shows and sends again what notifications send');
  filters(place(delivery.command('list')))
    .option('--limit <number>', 'the largest number of deliveries', '20')
    .option('--json', 'prints { deliveries }')
    .description('lists deliveries, newest first, each with its last attempt')
    .addHelpText('after', examples('ensemble delivery list --status failed --since 2d'))
    .action(async (options: DeliveryListOptions) => end(await listDeliveries(options, output, host)));
  place(delivery.command('show'))
    .argument('<id>', 'id of the delivery')
    .option('--json', 'prints the delivery')
    .description('shows one delivery: its attempts and its body')
    .action(async (id: string, options: DeliveryOptions) => end(await showDelivery(id, options, output, host)));
  place(delivery.command('redeliver'))
    .argument('<id>', 'id of the delivery')
    .option('--json', 'prints the delivery')
    .description('sends one delivery again, with all its retries')
    .action(async (id: string, options: DeliveryOptions) => end(await redeliver(id, options, output, host)));
  filters(place(delivery.command('replay')))
    .option('--json', 'prints the job')
    .description('sends again all deliveries that match (default: those that failed), as a job')
    .addHelpText('after', examples('ensemble delivery replay --since 2h --receiver https://shop.example/hooks'))
    .action(async (options: DeliveryFilterOptions) => end(await redeliver(undefined, options, output, host)));
  place(delivery.command('receivers'))
    .option('--json', 'prints { receivers }')
    .description('lists the receivers that fail or are paused')
    .action(async (options: DeliveryOptions) => end(await listReceivers(options, output, host)));
  place(delivery.command('resume'))
    .argument('<receiver>', 'the receiver, from the list, or its address')
    .option('--json', 'prints { deliveries }')
    .description('resumes a paused receiver: what has waited is sent')
    .action(async (id: string, options: DeliveryOptions) => end(await resumeReceiver(id, options, output, host)));
  program
    .command('listen')
    .option('--port <number>', 'port to listen on; 0 for any free port', '4040')
    .option('--host <address>', 'address to listen on', '127.0.0.1')
    .option('--secret-env <name>', 'the process variable with the secret, to check signatures')
    .option('--brand <word>', 'the word in the names of the headers', 'service')
    .option('--status <number>', 'the status of each answer', '204')
    .option('--json', 'prints each delivery as a line of JSON')
    .description('receives notifications on this machine; prints each, and says whether its signature holds')
    .addHelpText('after', examples('HOOK_SECRET=... ensemble listen --secret-env HOOK_SECRET'))
    .action(async (options: ListenOptions) => end(await listen(options, output, host)));
}

function filters(command: Command): Command {
  return command
    .option('--ensemble <name>', 'only deliveries of this ensemble')
    .option('--execution <id>', 'only deliveries of this execution')
    .option('--status <status>', 'pending, succeeded, failed or paused')
    .option('--receiver <url>', 'only deliveries to this address')
    .option('--since <instant>', 'only events from then on: 2h (ago), 2026-01-31T09:00:00Z or Unix ms')
    .option('--until <instant>', 'only events before then');
}
