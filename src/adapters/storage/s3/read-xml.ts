/** Reads the few elements of S3's answers that the store needs. Their form is fixed: no attributes, no mixed content. */

const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };

/** The texts of all elements of one name, in their order. */
export function readTexts(xml: string, name: string): readonly string[] {
  const found = xml.matchAll(new RegExp(`<${name}(?:\\s[^>]*)?(?:/>|>([^<]*)</${name}\\s*>)`, 'g'));
  return Array.from(found, ([, text = '']) => decodeEntities(text));
}

/** The text of the first element of a name. */
export function readText(xml: string, name: string): string | undefined {
  return readTexts(xml, name)[0];
}

/** Text as the content of an element. */
export function escapeXml(text: string): string {
  return text.replace(/[&<>]/g, (one) => `&#${one.charCodeAt(0)};`);
}

function decodeEntities(text: string): string {
  return text.replace(/&(?:#x([0-9a-f]+)|#(\d+)|(\w+));/gi, (whole, hex?: string, decimal?: string, name = '') => {
    const code = hex !== undefined ? Number.parseInt(hex, 16) : Number(decimal);
    if (hex === undefined && decimal === undefined) return ENTITIES[name as string] ?? whole;
    return code <= 0x10ffff ? String.fromCodePoint(code) : whole;
  });
}
