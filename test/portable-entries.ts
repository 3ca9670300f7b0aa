/** The entries that run on every runtime: no `node:` module, no optional package. `tsconfig.portable.json` checks them without Node's types. */
export const PORTABLE_ENTRIES = [
  'index',
  'testing',
  'conformance',
  'adapter',
  'ai',
  'twilio',
  'cloudflare',
  'dashboard',
] as const;
