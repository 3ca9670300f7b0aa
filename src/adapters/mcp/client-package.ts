/** What the adapter takes from the optional package `@modelcontextprotocol/client`. Only these names reach the bundle of a Worker. */

export { Client, InMemoryResponseCacheStore, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
export { CfWorkerJsonSchemaValidator } from '@modelcontextprotocol/client/validators/cf-worker';
