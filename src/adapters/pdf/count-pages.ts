/** Counts the pages of a PDF that Chromium wrote, from its bytes: by the table of its objects, not by a search in its content. */

/** @returns undefined for bytes that are not such a PDF */
export function countPages(bytes: Uint8Array): number | undefined {
  const text = new TextDecoder('latin1').decode(bytes);
  if (!text.startsWith('%PDF-')) return undefined;
  const start = /startxref\s+(\d{1,10})\s+%%EOF\s*$/.exec(text.slice(-200))?.[1];
  if (start === undefined) return undefined;
  const offsets = readTable(text, Number(start));
  const trailer = text.indexOf('trailer', Number(start));
  const root = trailer === -1 ? undefined : reference(dictionary(text.slice(trailer, trailer + MAX_OBJECT)), 'Root');
  if (!offsets || root === undefined) return undefined;
  const object = (number: number) => {
    const offset = offsets.get(number);
    const found = offset === undefined ? '' : text.slice(offset, offset + MAX_OBJECT);
    return new RegExp(`^${number} \\d+ obj\\b`).test(found) ? dictionary(found) : '';
  };
  const pages = reference(object(root), 'Pages');
  const count = pages === undefined ? undefined : /\/Count\s+(\d{1,7})\b/.exec(object(pages))?.[1];
  return count === undefined || count === '0' ? undefined : Number(count);
}

const MAX_OBJECT = 1024 * 1024;

/** The places of all objects. A table whose entries are compressed is not read. */
function readTable(text: string, start: number): ReadonlyMap<number, number> | undefined {
  const head = /^xref\s+/.exec(text.slice(start, start + 20));
  if (!head) return undefined;
  const offsets = new Map<number, number>();
  let at = start + head[0].length;
  for (;;) {
    const section = /^(\d{1,10}) (\d{1,10})\s*\r?\n/.exec(text.slice(at, at + 40));
    if (!section) return offsets;
    at += section[0].length;
    for (let i = 0; i < Number(section[2]); i++, at += 20) {
      const entry = /^(\d{10}) \d{5} ([nf])/.exec(text.slice(at, at + 20));
      if (!entry) return undefined;
      if (entry[2] === 'n') offsets.set(Number(section[1]) + i, Number(entry[1]));
    }
  }
}

/** An object without its texts, which may look like keys. */
function dictionary(object: string): string {
  const end = object.search(/\bendobj\b|\bstream\r?\n|startxref/);
  return object.slice(0, end === -1 ? undefined : end).replace(/\((?:\\[\s\S]|[^\\()])*\)/g, '()');
}

function reference(dictionaryText: string, key: string): number | undefined {
  const found = new RegExp(`/${key}\\s+(\\d{1,10})\\s+\\d{1,5}\\s+R\\b`).exec(dictionaryText)?.[1];
  return found === undefined ? undefined : Number(found);
}
