/** The custom headers of a mail whose provider has no fields for tags and metadata. */

import { OrchestratorError } from '../../engine/base/errors.ts';
import type { MailMessage } from '../../engine/operation/mail.port.ts';

// A line of a mail has at most 998 bytes, and a header can only be broken at a space.
const MAX_WORD = 800;

/**
 * The headers of the message, `X-Tags` with its tags, and `X-Metadata` with its metadata as JSON in ASCII. Recipients can read them.
 *
 * @throws INVALID_INPUT for a word that is too long for a header
 */
export function mailHeaders({ headers, tags, metadata }: Pick<MailMessage, 'headers' | 'tags' | 'metadata'>) {
  const own: Record<string, string> = {};
  if (tags.length > 0) own['X-Tags'] = tags.join(', ');
  // Spaces between the entries, so that a long header can be folded.
  if (Object.keys(metadata).length > 0)
    own['X-Metadata'] = JSON.stringify(metadata, null, 1)
      .replace(/\n\s*/g, ' ')
      .replace(/[\u007f-\uffff]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);
  for (const [name, value] of Object.entries(own)) {
    if (value.split(' ').some((word) => word.length > MAX_WORD)) {
      const what = name === 'X-Tags' ? 'tags' : 'metadata';
      const message = `\`${what}\` of this mail is sent as the header ${name}, in which no word has more than ${MAX_WORD} characters; shorten it`;
      throw new OrchestratorError('INVALID_INPUT', message);
    }
  }
  return { ...headers, ...own };
}
