/** The error of a case that cannot be measured on this machine. Its row shows the reason. Any other error is a failure. */

export function unavailable(reason) {
  return Object.assign(new Error(reason), { code: 'UNAVAILABLE' });
}

export function isUnavailable(error) {
  return error?.code === 'UNAVAILABLE';
}

/** Prints what a script measured as one line of JSON, or why it can't be measured here, and ends the process. */
export async function printMeasured(measure) {
  try {
    console.log(JSON.stringify(await measure()));
  } catch (error) {
    if (!isUnavailable(error)) throw error;
    console.log(JSON.stringify({ unavailable: error.message }));
  }
  process.exit(0);
}
