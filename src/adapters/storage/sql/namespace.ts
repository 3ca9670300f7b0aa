/** The option `namespace` of the SQL storages. */

import { optional } from '../../../engine/base/read-options.ts';
import { isPlainText } from '../../../engine/storage/data.port.ts';

/** The check of the option `namespace` of a storage. */
export const NAMESPACE = optional<string>(
  'text of 1 to 128 characters',
  (text) => typeof text === 'string' && text !== '' && text.length <= 128 && isPlainText(text),
);
