/** A terminal's screen, as far as the live progress needs it: what a person sees after each write. */

export interface Screen {
  write(text: string): boolean;
  isTTY: boolean;
  columns: number;
  rows: number;
  /** All lines that were ever shown, also those that scrolled away, without colours and without empty lines at the end. */
  lines(): string[];
  /** Whether the cursor is visible. */
  cursor(): boolean;
}

export function createScreen(columns = 60, rows = 20): Screen {
  const lines: string[] = [''];
  let at = 0;
  let column = 0;
  let cursor = true;
  const put = (char: string) => {
    if (char === '\n') {
      at += 1;
      column = 0;
      if (at === lines.length) lines.push('');
    } else if (char === '\r') {
      column = 0;
    } else {
      if (column === screen.columns) put('\n');
      const line = (lines[at] as string).padEnd(column);
      lines[at] = line.slice(0, column) + char + line.slice(column + 1);
      column += 1;
    }
  };
  const screen: Screen = {
    isTTY: true,
    columns,
    rows,
    write(text) {
      // biome-ignore lint/suspicious/noControlCharactersInRegex: the regex reads control sequences
      for (const [part, , sequence] of text.matchAll(/(\u001b\[([^A-Za-z]*[A-Za-z]))|[\s\S]/gu)) {
        if (sequence === undefined) put(part);
        else if (sequence === '?25l') cursor = false;
        else if (sequence === '?25h') cursor = true;
        else if (sequence === 'J') {
          lines.length = at + 1;
          lines[at] = (lines[at] as string).slice(0, column);
        } else if (sequence === 'K') lines[at] = (lines[at] as string).slice(0, column);
        else if (/^\d+A$/.test(sequence)) {
          // The cursor can't move to lines that scrolled away.
          const top = Math.max(0, lines.length - screen.rows);
          at = Math.max(top, at - Number.parseInt(sequence, 10));
        } else if (!/^\d+m$/.test(sequence)) throw new Error(`the screen doesn't know ${JSON.stringify(part)}`);
      }
      return true;
    },
    lines: () =>
      lines
        .join('\n')
        .trimEnd()
        .split('\n')
        .map((line) => line.trimEnd()),
    cursor: () => cursor,
  };
  return screen;
}
