/**
 * The public names for templates in Liquid.
 *
 * @module ensemble-orchestrator/liquid
 */

export { type LiquidTemplatesOptions, liquidTemplates } from '../adapters/templates/liquid-templates.ts';
