/** Reads the text of a new version. */

import {
  compileComponentText,
  HAS_TAGS,
  readComponentConfig,
  type TextLanguage,
} from '../../engine/definition/compile/compile-references.ts';
import { ExpressionSyntaxError } from '../../engine/expression/expression-syntax-error.ts';
import {
  type ComponentContent,
  type ComponentKind,
  type ComponentMetadata,
  MAX_CONTENT,
} from '../../engine/model/component.ts';
import { refuse } from '../../engine/model/component-fields.ts';

/** @throws INVALID_REQUEST for a text that can't be one of its kind */
export function readContent(
  kind: ComponentKind,
  content: unknown,
  metadata: ComponentMetadata,
  language: TextLanguage,
): ComponentContent {
  if (typeof content !== 'string' || content.trim() === '')
    return refuse(`\`content\` must be the text of the ${kind}`);
  if (content.length > MAX_CONTENT)
    return refuse(`\`content\` has ${content.length} characters, and at most ${MAX_CONTENT} are allowed`);
  try {
    if (kind === 'config') readComponentConfig(content);
    else if (language.templates || kind !== 'template' || !HAS_TAGS.test(content))
      // A process that only creates versions may have no language for templates with tags.
      compileComponentText(kind, content, false, language);
  } catch (error) {
    if (error instanceof ExpressionSyntaxError) refuse(`\`content\` can't be read as a ${kind}: ${error.message}`);
    throw error;
  }
  return { kind, content, metadata };
}
