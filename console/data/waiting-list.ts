import { collator, type ListQuery, matcherOf } from './node-list.ts';
import type { PodItem } from './store.ts';
import { BADNESS } from './vm-list.ts';

export type WaitingSort = keyof typeof WAITING_SORTS;
export type WaitingFilter = keyof typeof WAITING_FILTERS;
export type WaitingQuery = ListQuery<WaitingSort, WaitingFilter>;

export const isBroken = ({ verdict }: PodItem) => verdict === 'broken';
const badness = ({ verdict = 'waiting' }: PodItem) => BADNESS.indexOf(verdict);

const byName = (a: PodItem, b: PodItem) =>
  collator.compare(a.namespace, b.namespace) || collator.compare(a.vm ?? a.name, b.vm ?? b.name);

/** Without a time: it has been on its node for less time than the others wait, so its time is after every year. */
const sinceOf = ({ since = '9999' }: PodItem) => since;
const byAge = (a: PodItem, b: PodItem) => sinceOf(b).localeCompare(sinceOf(a)) || byName(b, a);

/** Ascending: the least urgent, the shortest wait. */
export const WAITING_SORTS = {
  name: byName,
  since: byAge,
  verdict: (a: PodItem, b: PodItem) => badness(a) - badness(b) || byAge(a, b),
};

export const WAITING_FILTERS = {
  all: { title: 'All waiting', accepts: () => true },
  broken: { title: 'Need attention', accepts: isBroken },
  vms: { title: 'VMs only', accepts: ({ vm }: PodItem) => vm !== undefined },
};

export function findWaiting(pods: Iterable<PodItem>, { text, sort, descending, filter }: WaitingQuery): PodItem[] {
  const matches = matcherOf(text, textsOf);
  const order = WAITING_SORTS[sort];
  return [...pods]
    .filter((pod) => WAITING_FILTERS[filter].accepts(pod) && matches(pod))
    .sort(descending ? (a, b) => order(b, a) : order);
}

function textsOf({ namespace, name, vm = '', node = '', nominated = '', networks, ...pod }: PodItem): string[] {
  const state = [pod.reason ?? '', pod.text ?? ''];
  return [`${namespace}/${vm}`, name, node, nominated, ...networks.map(([network]) => network), ...state];
}
