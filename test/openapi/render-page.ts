/** Renders the OpenAPI document as the page `docs/reference/http-operations.md`. */

type Schema = Readonly<Record<string, unknown>>;
interface Operation {
  readonly summary: string;
  readonly 'x-scope': string;
  readonly parameters?: readonly { readonly name: string; readonly in: string }[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: Schema }>> };
  readonly responses: Readonly<
    Record<string, { readonly content?: Readonly<Record<string, { readonly schema: Schema }>> }>
  >;
}

export function renderPage(document: object): string {
  const { paths, components } = document as {
    readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
    readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
  };
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => rowOf(`${method.toUpperCase()} ${path}`, operation)),
  );
  const shapes = Object.entries(components.schemas).map(([name, schema]) => `| \`${name}\` | ${typeOf(schema)} |`);
  return `# Operations of the HTTP API

This page is made from the [OpenAPI document](../http-api.md#openapi). [HTTP API](../http-api.md) explains the operations. A field with \`?\` may be
absent. An error has the form \`Error\`.

| operation | what it does | scope | query | body | responses |
|---|---|---|---|---|---|
${operations.join('\n')}

## Forms

| form | fields |
|---|---|
${shapes.join('\n')}
`;
}

function rowOf(name: string, { summary, parameters = [], requestBody, responses, ...operation }: Operation): string {
  const query = parameters.filter((one) => one.in === 'query').map((one) => `\`${one.name}\``);
  const [body] = Object.values(requestBody?.content ?? {});
  const replies = Object.entries(responses)
    .filter(([status]) => status !== 'default')
    .map(([status, { content }]) => `${status} ${typeOf(Object.values(content ?? {})[0]?.schema ?? {})}`);
  const scope = { public: 'none', any: 'any token' }[operation['x-scope']] ?? `\`${operation['x-scope']}\``;
  return `| \`${name}\` | ${summary} | ${scope} | ${query.join(' ')} | ${body ? typeOf(body.schema) : ''} | ${replies.join(', ')} |`;
}

function typeOf(schema: Schema): string {
  const { $ref, enum: values, anyOf, items, properties, type, const: only } = schema;
  if (typeof $ref === 'string') return `\`${$ref.slice($ref.lastIndexOf('/') + 1)}\``;
  if (Array.isArray(values)) return values.map((one) => `\`${String(one)}\``).join(', ');
  if (Array.isArray(anyOf)) return anyOf.map(typeOf).join(' or ');
  if (only !== undefined) return `\`${String(only)}\``;
  if (type === 'array') return `list of ${typeOf((items as Schema) ?? {})}`;
  if (properties === undefined) return type === undefined ? 'any JSON' : String(type);
  const required = (schema.required as readonly string[] | undefined) ?? [];
  const fields = Object.entries(properties as Record<string, Schema>).map(([name, one]) => {
    const isNested = one.properties !== undefined || one.items !== undefined || one.enum !== undefined;
    const of = isNested || one.$ref !== undefined || one.anyOf !== undefined ? ` (${typeOf(one)})` : '';
    return `\`${name}${required.includes(name) ? '' : '?'}\`${of}`;
  });
  return fields.join(', ');
}
