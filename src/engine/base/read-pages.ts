/** Reads a list that comes in pages. */

/** The largest page of every listing. A larger `limit` counts as this one. */
export const MAX_PAGE = 250;

/** What a page is asked for. */
export interface PageRequest {
  readonly limit: number;
  readonly cursor?: string;
}

type Page<Key extends string, Item> = { readonly [key in Key]: readonly Item[] } & { readonly nextCursor?: string };

/**
 * @param key - the key of a page that holds its items
 * @param read - reads one page
 * @param wanted - the largest number of items
 * @returns one page with all the items, and a cursor if there are more
 */
export async function readPages<Key extends string, Item>(
  key: Key,
  read: (request: PageRequest) => Promise<Page<Key, Item>>,
  wanted = Number.POSITIVE_INFINITY,
): Promise<{ readonly items: Item[]; readonly nextCursor?: string }> {
  const items: Item[] = [];
  let cursor: string | undefined;
  do {
    const limit = Math.min(MAX_PAGE, wanted - items.length);
    const page: Page<Key, Item> = await read({ limit, ...(cursor !== undefined && { cursor }) });
    items.push(...page[key]);
    cursor = page.nextCursor;
  } while (cursor !== undefined && items.length < wanted);
  return cursor === undefined ? { items } : { items, nextCursor: cursor };
}
