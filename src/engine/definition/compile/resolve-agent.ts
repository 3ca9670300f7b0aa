/** Finds the agent of a step, which is defined in the step, declared in the ensemble or shared, and the place of its fields. */

import { formatPath } from '../../base/json/json.ts';
import { suggestName } from '../../base/suggest-name.ts';
import { quoted } from '../../base/wording.ts';
import type { ComponentUse } from '../../compiled/compiled-ensemble.ts';
import type { AgentBehaviour, AgentStep } from '../../ensemble/ensemble.ts';
import { withStepFields } from '../../ensemble/step-fields.ts';
import type { ParsedExpressions } from '../../expression/syntax/parsed-expressions.ts';
import type { RequestPart } from '../../webhook/kept-request.ts';
import type { Report } from '../forms/check-shape.ts';
import type { Path } from '../source/problem.ts';
import type { KnownNames } from './names/outermost-names.ts';
import type { CompileHost } from './triggers/compile-host.ts';

/** The place of a field, and the function that reports problems there. */
export interface Origin {
  readonly path: Path;
  readonly report: Report;
}

/** An agent as one step sees it. */
export interface ResolvedAgent {
  readonly name: string;
  readonly behaviour: AgentBehaviour;
  /** Whether its definition is wrong or missing, which is reported. Then only the fields of the step are known. */
  readonly broken: boolean;
  at(field: keyof AgentBehaviour): Origin;
}

/** Everything besides the flow that compiling the flow needs. Paths are paths of the definition in its current form. */
export interface FlowContext {
  readonly host: CompileHost;
  readonly report: Report;
  /** The name of the ensemble. */
  readonly ensemble: string;
  readonly hasState: boolean;
  /** Whether the part at a path was wrong and left out. */
  readonly dropped: (path: Path) => boolean;
  /** The declared agents by name, with their paths. */
  readonly agents: ReadonlyMap<string, { readonly behaviour: AgentBehaviour; readonly path: Path }>;
  /** Whether an unknown agent may be one whose definition could not be read. */
  readonly mayBeBroken: (name: string) => boolean;
  /** Filled during the compilation: the number of steps that use each agent. */
  readonly usedAgents: Map<string, number>;
  readonly needs: Set<string>;
  /** Filled during the compilation: the form of each signal, as text. */
  readonly signalForms: Map<string, string>;
  /** Filled during the compilation: the syntax trees of all expressions. */
  readonly trees: ParsedExpressions;
  /** Filled during the compilation: the parts of its request that the definition reads. */
  readonly requestReads: Set<RequestPart>;
  /** Filled during the compilation: whether a router gives a prompt, and what to report of the agents without one if none does. */
  readonly prompts: { hasRoute: boolean; hasReference: boolean; readonly missing: (() => void)[] };
  /** Filled during the compilation. */
  readonly components: ComponentUse[];
  /** Filled during the compilation: whether there is a `while` or a `foreach`. */
  readonly loops: { hasAny: boolean };
  /** The fields of the input of the execution. Undefined: they are not declared. */
  readonly inputFields: readonly string[] | undefined;
  /** The ensembles that steps start. */
  readonly calls: EnsembleCall[];
  /** The agents that lead to the agent that is compiled now, because their operations call it. */
  readonly callers: readonly string[];
  /** What an agent may read that an operation calls: no result of the flow. */
  namesOfCall(agent: string): KnownNames;
}

/** A step that starts an ensemble. */
export interface EnsembleCall {
  readonly ensemble: string;
  /** The path of the ensemble's name. */
  readonly path: Path;
}

/**
 * @param path - the path of the step in the definition
 * @param name - the place of the agent's name
 */
export function resolveAgent(step: AgentStep, path: Path, name: Origin, context: FlowContext): ResolvedAgent {
  const { agent } = step;
  const { report } = context;
  const own = (field: string): Origin => ({ path: [...path, field], report });
  const declared = context.agents.get(agent);
  const shared = context.host.sharedAgents.get(agent);
  if (declared || shared) context.usedAgents.set(agent, (context.usedAgents.get(agent) ?? 0) + 1);
  if (step.operation !== undefined || step.routes !== undefined) {
    if (declared) {
      const message = `agent ${quoted(agent)} is declared in \`agents\` and defined here again; keep one of them`;
      name.report({ path: name.path, message });
    }
    return { name: agent, behaviour: step, broken: false, at: own };
  }
  const unread = ['operation', 'type', 'routes'].some((key) => context.dropped([...path, key]));
  for (const key of ['config', 'fromComponent', 'output'] as const) {
    if (step[key] === undefined || unread) continue;
    const message = `\`${key}\` belongs to the agent: set it where the agent is declared, or give \`operation\` here too`;
    report({ path: [...path, key], key: true, message });
  }
  const base = declared?.behaviour ?? shared;
  if (!base) {
    if (!context.mayBeBroken(agent) && !unread) reportUnknown(agent, name, context);
    return { name: agent, behaviour: step, broken: true, at: own };
  }
  const { behaviour, given } = withStepFields(base, step);
  const inherited = declared ? undefined : reportShared(agent, name);
  return {
    name: agent,
    behaviour,
    broken: false,
    at(field) {
      if (given.has(field)) return own(field);
      return declared ? { path: [...declared.path, field], report } : { path: [field], report: inherited as Report };
    },
  };
}

// A shared agent has its own source. Its problems are reported at the step that uses it.
function reportShared(agent: string, name: Origin): Report {
  return ({ path, message, suggestion, notConfigured, warning }) => {
    // A shared agent is made for many flows: a part with no effect in this flow may have one in another flow.
    if (warning) return;
    const where = path.length === 0 ? '' : ` at \`${formatPath(path)}\``;
    name.report({
      path: name.path,
      message: `shared agent ${quoted(agent)}${where}: ${message}`,
      suggestion,
      ...(notConfigured ? { notConfigured } : {}),
    });
  };
}

function reportUnknown(agent: string, name: Origin, context: FlowContext): void {
  name.report({
    path: name.path,
    message: `there is no agent ${quoted(agent)}; declare it in \`agents\`, or give its \`operation\` in the step`,
    suggestion: suggestName(agent, [...context.agents.keys(), ...context.host.sharedAgents.keys()]),
  });
}
