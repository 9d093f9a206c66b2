import type { Signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import type { ListQuery } from '../data/node-list.ts';
import type { Column } from './virtual-grid.tsx';

export interface ListControlsProps<Sort extends string, Filter extends string, Item> {
  readonly what: string;
  readonly placeholder: string;
  readonly query: Signal<ListQuery<Sort, Filter>>;
  readonly filters: Readonly<Record<Filter, { readonly title: string; readonly accepts: (item: Item) => boolean }>>;
  readonly items: readonly Item[];
  readonly matchCount: number;
  readonly children?: ComponentChildren;
}

export function ListControls<Sort extends string, Filter extends string, Item>(
  props: ListControlsProps<Sort, Filter, Item>,
) {
  const { what, placeholder, query, filters, items, matchCount, children } = props;
  const { text, filter } = query.value;
  return (
    // biome-ignore lint/a11y/useSemanticElements: the search element is newer than some browsers that are still in use
    <form class="controls" role="search" onSubmit={(event) => event.preventDefault()}>
      <label class="search">
        <span class="unseen">Search {what}</span>
        <input
          type="search"
          placeholder={placeholder}
          value={text}
          onInput={({ currentTarget }) => {
            query.value = { ...query.value, text: currentTarget.value };
          }}
        />
      </label>
      <label class="filter">
        <span class="unseen">Which {what}</span>
        <select
          value={filter}
          onChange={({ currentTarget }) => {
            query.value = { ...query.value, filter: currentTarget.value as Filter };
          }}
        >
          {(Object.keys(filters) as Filter[]).map((value) => (
            <option key={value} value={value}>
              {filters[value].title} ({items.filter(filters[value].accepts).length.toLocaleString('en')})
            </option>
          ))}
        </select>
      </label>
      {children}
      <output class="found">
        {matchCount === items.length
          ? ''
          : `${matchCount.toLocaleString('en')} of ${items.length.toLocaleString('en')}`}
      </output>
    </form>
  );
}

export function sortable<Sort extends string, Filter extends string>(
  query: Signal<ListQuery<Sort, Filter>>,
  key: Sort,
  title: string,
): Column {
  const { sort, descending } = query.value;
  const isName = key === 'name' || key === 'node';
  const onSort = () => {
    query.value = { ...query.value, sort: key, descending: sort === key ? !descending : !isName };
  };
  return sort === key
    ? { key, title, onSort, sorted: descending ? 'descending' : 'ascending' }
    : { key, title, onSort };
}
