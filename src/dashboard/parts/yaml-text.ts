/** A JSON value as YAML, for people to read. The package `yaml` would make the page half as large again. Pure. */

/** Texts that YAML would read as something else, or in more than one line. */
const NEEDS_QUOTES =
  /^$|^[\s\-?:,[\]{}#&*!|>'"%@`]|^(?:true|false|null|yes|no|on|off|~)$|^[\d.+-]|: |:$| #|\s$|[^\P{Cc}\n]|[\u2028\u2029]/iu;

export function toYaml(value: unknown, indent = ''): string {
  if (Array.isArray(value) && value.length > 0)
    return value.map((item) => `${indent}- ${inner(item, `${indent}  `).trimStart()}`).join('\n');
  if (isFilled(value))
    return Object.entries(value)
      .filter(([, own]) => own !== undefined)
      .map(
        ([key, own]) =>
          `${indent}${scalar(key)}:${isNested(own) ? `\n${toYaml(own, `${indent}  `)}` : ` ${inner(own, `${indent}  `)}`}`,
      )
      .join('\n');
  return indent + scalar(value);
}

function inner(value: unknown, indent: string): string {
  return isNested(value) ? toYaml(value, indent) : block(value, indent);
}

/** A text of several lines is a block. */
function block(value: unknown, indent: string): string {
  if (typeof value !== 'string' || !/\n/.test(value) || /^\s|[^\P{Cc}\n]/u.test(value)) return scalar(value);
  const sign = value.endsWith('\n') ? '|' : '|-';
  return `${sign}\n${value.replace(/\n$/, '').replace(/^(?=.)/gm, indent)}`;
}

function isNested(value: unknown): boolean {
  return (Array.isArray(value) && value.length > 0) || isFilled(value);
}

function isFilled(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && Object.keys(value).length > 0;
}

function scalar(value: unknown): string {
  if (typeof value !== 'string') return JSON.stringify(value) ?? 'null';
  return NEEDS_QUOTES.test(value) || value.includes('\n') ? JSON.stringify(value) : value;
}
