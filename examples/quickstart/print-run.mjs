/** Prints a line for each event of an agent. */
export function printAgents(orchestrator) {
  orchestrator.on('agent.completed', ({ data }) => console.log(line(data.agent, 'ok', data.duration)));
  orchestrator.on('agent.failed', ({ data }) =>
    console.log(line(data.agent, 'failed', data.duration, data.error.message)),
  );
  orchestrator.on('agent.skipped', ({ data }) => console.log(line(data.agent, 'skipped')));
  orchestrator.on('agent.retrying', ({ data, timestamp }) => {
    const wait = data.retryAt - Date.parse(timestamp);
    console.log(
      line(data.agent, 'retry', undefined, `attempt ${data.attempt}: ${data.error.message}; retry in ${wait} ms`),
    );
  });
}

/** Prints each output that is not null on a line. */
export function printOutput(output) {
  for (const [name, value] of Object.entries(output))
    if (value !== null) console.log(`     ${name.padEnd(12)} ${value}`);
}

export function line(name, what, ms, more = '') {
  const time = ms === undefined ? '' : `${ms} ms`;
  return `  ${name.padEnd(10)} ${what.padEnd(9)} ${time.padStart(7)}  ${more}`.trimEnd();
}
