/** A table that scrolls inside its own frame on a narrow screen. */

import type { ComponentChildren } from 'preact';

interface TableProps {
  /** The titles of the columns. An empty one is the column of buttons. */
  readonly heads: readonly string[];
  /** The rows. */
  readonly children: ComponentChildren;
}

export function Table({ heads, children }: TableProps) {
  return (
    <div class="table-frame">
      <table>
        <thead>
          <tr>
            {heads.map((title) => (
              <th key={title} scope="col">
                {title || <span class="unseen">Actions</span>}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}
