/**
 * The public names for scripts from source text, which run without access to their host.
 *
 * @module ensemble-orchestrator/sandbox
 */

export {
  type Sandbox,
  type SandboxContext,
  type SandboxOptions,
  type SourceProblem,
  sandbox,
} from '../adapters/sandbox/sandbox.ts';
