import { effect, signal } from '@preact/signals';
import { NODE_FILTERS, NODE_SORTS, type NodeQuery, parseQuery, queryText } from '../data/node-list.ts';
import { VM_FILTERS, VM_SORTS, type VmQuery } from '../data/vm-list.ts';
import { WAITING_FILTERS, WAITING_SORTS, type WaitingQuery } from '../data/waiting-list.ts';

const NODES: NodeQuery = { text: '', sort: 'problems', descending: true, filter: 'all' };

const VMS: VmQuery = { text: '', sort: 'verdict', descending: true, filter: 'all' };

const WAITING: WaitingQuery = { text: '', sort: 'verdict', descending: true, filter: 'all' };

export const nodeQuery = signal<NodeQuery>(NODES);
export const vmQuery = signal<VmQuery>(VMS);
export const waitingQuery = signal<WaitingQuery>(WAITING);

type ListName = 'nodes' | 'vms' | 'waiting';

function parametersOf(list: ListName): string {
  if (list === 'nodes') return queryText(nodeQuery.value, NODES);
  return list === 'vms' ? queryText(vmQuery.value, VMS) : queryText(waitingQuery.value, WAITING);
}

function takeParameters(list: ListName, text: string): void {
  if (text === parametersOf(list)) return;
  if (list === 'nodes') nodeQuery.value = parseQuery(text, NODES, NODE_SORTS, NODE_FILTERS);
  if (list === 'vms') vmQuery.value = parseQuery(text, VMS, VM_SORTS, VM_FILTERS);
  if (list === 'waiting') waitingQuery.value = parseQuery(text, WAITING, WAITING_SORTS, WAITING_FILTERS);
}

/** The current selection. It is in the address, so that users can link to a view and the browser's Back works. */
export interface Route {
  readonly list: ListName;
  /** Name of a node; namespace/name of a VM or of a waiting pod. */
  readonly chosen?: string;
}

const LISTS: readonly ListName[] = ['nodes', 'vms', 'waiting'];

export const route = signal<Route>(parse(location.hash));

/** Includes the list's query, so that the list behind a selection stays the same. */
export function hashOf({ list, chosen }: Route): string {
  const path = chosen === undefined ? '' : `/${chosen.split('/').map(encodeURIComponent).join('/')}`;
  return `#/${list}${path}${parametersOf(list)}`;
}

export function go(to: Route): void {
  location.hash = hashOf(to);
}

function parse(hash: string): Route {
  const [path = '', parameters = ''] = hash.split(/\?(.*)/s);
  const [name, ...rest] = path.replace(/^#\/?/, '').split('/').map(decoded);
  const list = LISTS.find((one) => one === name) ?? 'nodes';
  takeParameters(list, parameters === '' ? '' : `?${parameters}`);
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
    if (location.hash !== '' || parametersOf(route.value.list) !== '') {
      if (location.hash !== hash) history.replaceState(null, '', hash);
    }
  });
}
