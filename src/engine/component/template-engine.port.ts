/** The port of a template language, for stored templates. Without one, a template has `{{ ... }}` and `${...}` of the library's own. */

import type { JsonObject } from '../base/json/json.ts';

export interface TemplateEngine {
  /**
   * @param options - `escapes`: the text is HTML, and what is inserted must be escaped unless the template says otherwise
   * @returns the text for the input of an agent. It throws for data that it can't use, and at a limit
   * @throws Error for a text that is not a template
   */
  compile(text: string, options: { readonly escapes: boolean }): (data: JsonObject) => string;
}
