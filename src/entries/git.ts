/**
 * The public names for components in a git repository.
 *
 * @module ensemble-orchestrator/git
 */

export {
  type GitComponents,
  type GitComponentsOptions,
  gitComponents,
} from '../adapters/components/git/git-components.ts';
