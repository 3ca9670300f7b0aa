/** The error of a case that cannot be measured on this machine. Its row shows the reason. Any other error is a failure. */

export function unavailable(reason) {
  return Object.assign(new Error(reason), { code: 'UNAVAILABLE' });
}

export function isUnavailable(error) {
  return error?.code === 'UNAVAILABLE';
}
