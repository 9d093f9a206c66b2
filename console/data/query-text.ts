/** Search, filter and order of a list. */
export interface ListQuery<Sort extends string, Filter extends string> {
  /** Words; an item must match all of them. */
  readonly text: string;
  readonly sort: Sort;
  readonly descending: boolean;
  readonly filter: Filter;
}

/**
 * The parameters of a query in the address. They only contain differences from `usual`, so that most addresses are
 * short.
 */
export function queryText<S extends string, F extends string>(query: ListQuery<S, F>, usual: ListQuery<S, F>): string {
  const { text, sort, descending, filter } = query;
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
  usual: ListQuery<S, F>,
  sorts: readonly S[],
  filters: readonly F[],
): ListQuery<S, F> {
  const parameters = new URLSearchParams(text);
  const wanted = parameters.get('sort') ?? '';
  const sort = sorts.find((one) => one === wanted.replace(/^-/, ''));
  return {
    text: (parameters.get('q') ?? '').slice(0, 200),
    filter: filters.find((one) => one === parameters.get('filter')) ?? usual.filter,
    ...(sort === undefined
      ? { sort: usual.sort, descending: usual.descending }
      : { sort, descending: wanted.startsWith('-') }),
  };
}
