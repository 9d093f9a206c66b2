import { signal } from '@preact/signals';
import type { NodeFilter, NodeQuery, NodeSort } from '../data/node-list.ts';
import { parseQuery, queryText } from '../data/query-text.ts';
import type { VmFilter, VmQuery, VmSort } from '../data/vm-list.ts';

const NODES: NodeQuery = { text: '', sort: 'name', descending: false, filter: 'all' };
const NODE_SORTS: readonly NodeSort[] = ['name', 'freeCores', 'pods', 'problems'];
const NODE_FILTERS: readonly NodeFilter[] = ['all', 'problems', 'dpu', 'in-use', 'in-flight'];

const VMS: VmQuery = { text: '', sort: 'verdict', descending: true, filter: 'all' };
const VM_SORTS: readonly VmSort[] = ['name', 'node', 'cpus', 'verdict'];
const VM_FILTERS: readonly VmFilter[] = ['all', 'attention', 'mask'];

/** Search, filter and order of the lists; also in the address, so that a link shows the same. */
export const nodeQuery = signal<NodeQuery>(NODES);
export const vmQuery = signal<VmQuery>(VMS);

export type ListName = 'nodes' | 'vms' | 'waiting';

/** The parameters of a list's address. */
export function parametersOf(list: ListName): string {
  if (list === 'nodes') return queryText(nodeQuery.value, NODES);
  return list === 'vms' ? queryText(vmQuery.value, VMS) : '';
}

/** Sets a list's query from the parameters of an address. */
export function takeParameters(list: ListName, text: string): void {
  if (text !== parametersOf(list)) {
    if (list === 'nodes') nodeQuery.value = parseQuery(text, NODES, NODE_SORTS, NODE_FILTERS);
    if (list === 'vms') vmQuery.value = parseQuery(text, VMS, VM_SORTS, VM_FILTERS);
  }
}
