/** A status in its colour, always with its word. */

const TONES: Readonly<Record<string, string>> = {
  ...{ completed: 'good', succeeded: 'good', active: 'good' },
  ...{ failed: 'bad', timed_out: 'bad', paused: 'bad' },
  ...{ running: 'busy', retrying: 'busy', waiting: 'calm', queued: 'calm', pending: 'calm' },
};

/** The statuses of the API are words with underscores. */
export function Badge({ status }: { readonly status: string }) {
  return <span class={`badge ${toneOf(status)}`}>{status.replaceAll('_', ' ')}</span>;
}

export function toneOf(status: string): string {
  return TONES[status] ?? 'off';
}
