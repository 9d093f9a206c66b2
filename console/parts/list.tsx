import type { ComponentChildren } from 'preact';
import { numberText } from '../data/shape.ts';
import { go, type ListState, type Route } from '../state/route.ts';
import { type Column, VirtualGrid } from './virtual-grid.tsx';

interface ListProps<Item, S extends string, F extends string> {
  readonly name: Route['list'];
  readonly label: string;
  /** The items in a sentence. */
  readonly what: string;
  readonly placeholder: string;
  readonly state: ListState<Item, S, F>;
  readonly items: readonly Item[];
  readonly matching: readonly Item[];
  /** Titles; those with the key of an order sort the list. */
  readonly columns: Readonly<Record<string, string>>;
  readonly keyOf: (item: Item) => string;
  /** As in the address. */
  readonly nameOf: (item: Item) => string;
  readonly cells: (item: Item) => readonly ComponentChildren[];
  readonly chosen: string | undefined;
  readonly empty: ComponentChildren;
  /** Next to the search and the filter. */
  readonly children?: ComponentChildren;
}

/** The search, the filter and the rows of a list. */
export function List<Item, S extends string, F extends string>(props: ListProps<Item, S, F>) {
  const { name, label, what, placeholder, state, items, matching, columns, keyOf, nameOf, cells, chosen } = props;
  const { filters, sorts } = state.list;
  const { query } = state;
  const { text, filter, sort, descending } = query.value;
  const columnOf = ([key, title]: readonly [string, string]): Column => {
    if (!Object.hasOwn(sorts, key)) return { key, title };
    const isName = key === 'name' || key === 'node';
    const onSort = () => {
      query.value = { ...query.value, sort: key as S, descending: sort === key ? !descending : !isName };
    };
    if (sort !== key) return { key, title, onSort };
    return { key, title, onSort, sorted: descending ? 'descending' : 'ascending' };
  };
  return (
    <>
      {/* biome-ignore lint/a11y/useSemanticElements: the search element is newer than some browsers that are still in use */}
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
              query.value = { ...query.value, filter: currentTarget.value as F };
            }}
          >
            {(Object.keys(filters) as F[]).map((value) => (
              <option key={value} value={value}>
                {filters[value].title} ({numberText(items.filter(filters[value].accepts).length)})
              </option>
            ))}
          </select>
        </label>
        {props.children}
        <output class="found">
          {matching.length === items.length ? '' : `${numberText(matching.length)} of ${numberText(items.length)}`}
        </output>
      </form>
      <VirtualGrid
        label={label}
        columns={Object.entries(columns).map(columnOf)}
        items={matching}
        keyOf={keyOf}
        cells={cells}
        isChosen={(item) => nameOf(item) === chosen}
        onChoose={(item) => go({ list: name, chosen: nameOf(item) })}
        empty={props.empty}
      />
    </>
  );
}
