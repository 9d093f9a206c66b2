interface ListQuery<Sort extends string = string, Filter extends string = string> {
  readonly text: string;
  readonly sort: Sort;
  readonly descending: boolean;
  readonly filter: Filter;
}

/** A list of the page. */
export interface ListKind<Item, Sort extends string, Filter extends string> {
  /** Ascending. */
  readonly sorts: Readonly<Record<Sort, (a: Item, b: Item) => number>>;
  /** In the order of the menu. */
  readonly filters: Readonly<Record<Filter, { readonly title: string; readonly accepts: (item: Item) => boolean }>>;
  /** The query of an address without one. */
  readonly usual: ListQuery<Sort, Filter>;
  /** Where to look for each word of the search; not called without words. */
  readonly textsOf: (item: Item) => readonly string[];
}

export function findItems<Item, S extends string, F extends string>(
  { sorts, filters, textsOf }: ListKind<Item, S, F>,
  items: readonly Item[],
  { text, sort, descending, filter }: ListQuery<S, F>,
): Item[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const matches = (item: Item) => {
    if (words.length === 0) return true;
    const texts = textsOf(item).map((one) => one.toLowerCase());
    return words.every((word) => texts.some((one) => one.includes(word)));
  };
  const { accepts } = filters[filter];
  const order = sorts[sort];
  return items.filter((item) => accepts(item) && matches(item)).sort(descending ? (a, b) => order(b, a) : order);
}

/** Only differences from `usual`, so that most addresses are short. */
export function queryText({ text, sort, descending, filter }: ListQuery, usual: ListQuery): string {
  const parameters = new URLSearchParams();
  if (text !== '') parameters.set('q', text);
  if (filter !== usual.filter) parameters.set('filter', filter);
  if (sort !== usual.sort || descending !== usual.descending) parameters.set('sort', `${descending ? '-' : ''}${sort}`);
  const written = parameters.toString();
  return written === '' ? '' : `?${written}`;
}

/** The query in an address; unknown values are replaced by those of `usual`. */
export function parseQuery<S extends string, F extends string>(
  text: string,
  { usual, sorts, filters }: Pick<ListKind<never, S, F>, 'usual' | 'sorts' | 'filters'>,
): ListQuery<S, F> {
  const parameters = new URLSearchParams(text);
  const filter = parameters.get('filter') ?? '';
  const order = parameters.get('sort') ?? '';
  const sort = order.replace(/^-/, '');
  return {
    ...usual,
    text: (parameters.get('q') ?? '').slice(0, 200),
    ...(Object.hasOwn(filters, filter) && { filter: filter as F }),
    ...(Object.hasOwn(sorts, sort) && { sort: sort as S, descending: order.startsWith('-') }),
  };
}
