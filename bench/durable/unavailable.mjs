/** What a case throws that can't be measured here, for a reason that its row says; anything else that is thrown is a failure. */

export function unavailable(reason) {
  return Object.assign(new Error(reason), { code: 'UNAVAILABLE' });
}

export function isUnavailable(error) {
  return error?.code === 'UNAVAILABLE';
}
