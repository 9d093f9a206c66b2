import { effect, signal } from '@preact/signals';
import { findItems, type ListKind, parseQuery, queryText } from '../data/list.ts';
import { NODE_LIST } from '../data/node-list.ts';
import { VM_LIST, WAITING_LIST } from '../data/vm-list.ts';

export type ListState<Item, S extends string, F extends string> = ReturnType<typeof listState<Item, S, F>>;

/** A list with its query, which is in the address. */
function listState<Item, S extends string, F extends string>(list: ListKind<Item, S, F>) {
  const query = signal(list.usual);
  return {
    list,
    query,
    find: (items: readonly Item[]): Item[] => findItems(list, items, query.value),
    queryText: (): string => queryText(query.value, list.usual),
    takeQuery(text: string) {
      query.value = parseQuery(text, list);
    },
    /** Without a search, in the same order. */
    select(filter: F) {
      query.value = { ...query.value, text: '', filter };
    },
  };
}

export const lists = { nodes: listState(NODE_LIST), vms: listState(VM_LIST), waiting: listState(WAITING_LIST) };

/** The current selection. It is in the address, so that users can link to a view and the browser's Back works. */
export interface Route {
  readonly list: keyof typeof lists;
  /** Name of a node; namespace/name of a VM or of a waiting pod. */
  readonly chosen?: string;
}

export const route = signal<Route>(parse(location.hash));

/** Includes the list's query, so that the list behind a selection stays the same. */
export function hashOf({ list, chosen }: Route): string {
  const path = chosen === undefined ? '' : `/${chosen.split('/').map(encodeURIComponent).join('/')}`;
  return `#/${list}${path}${lists[list].queryText()}`;
}

export function go(to: Route): void {
  location.hash = hashOf(to);
}

function parse(hash: string): Route {
  const [path = '', parameters = ''] = hash.split(/\?(.*)/s);
  const [name = '', ...rest] = path.replace(/^#\/?/, '').split('/').map(decoded);
  const list = Object.hasOwn(lists, name) ? (name as Route['list']) : 'nodes';
  const text = parameters === '' ? '' : `?${parameters}`;
  if (text !== lists[list].queryText()) lists[list].takeQuery(text);
  const chosen = rest.join('/');
  return chosen === '' ? { list } : { list, chosen };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function followAddress(): void {
  addEventListener('hashchange', () => {
    route.value = parse(location.hash);
  });
  // A search changes the address without adding a step to the browser's history.
  effect(() => {
    const hash = hashOf(route.value);
    const isWritten = location.hash !== '' || lists[route.value.list].queryText() !== '';
    if (isWritten && location.hash !== hash) history.replaceState(null, '', hash);
  });
}
