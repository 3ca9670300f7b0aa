/** Hands a ticket to a team. An app would call its ticket system here, with `idempotencyKey`. */
export default function handOver({ input, config, idempotencyKey }) {
  return { ticket: `${config.team}-${input.urgent ? 'urgent' : 'normal'}`, key: idempotencyKey };
}
