import { computed, signal } from '@preact/signals';
import { type LineState, PageConnection } from '../data/connection.ts';
import type { NodeItem } from '../data/node.ts';
import { nodesByName, totalsOf } from '../data/node-list.ts';
import { type PodItem, Store } from '../data/store.ts';
import { isBroken, needsAttention, vmsOf } from '../data/vm-list.ts';
import type { Status } from '../data/wire.ts';
import { lists } from './route.ts';

/** The cluster. The signals below announce its changes to the page. */
export let store = new Store();

export const line = signal<LineState>('connecting');
/** When the console was last heard, in milliseconds since 1970; undefined while there is a connection. */
const brokenSince = signal<number | undefined>(undefined);
export const now = signal(Date.now());
setInterval(() => {
  now.value = Date.now();
}, 1000);
export const ready = signal(false);
export const status = signal<Status | undefined>(undefined);

/** The server sends a heartbeat every five seconds: a shorter interruption is not shown. */
const GRACE_MILLISECONDS = 6500;

/** Since when all data is old, in milliseconds since 1970: the page cannot reach the console, or the console the API server. */
export const oldSince = computed((): number | undefined => {
  const problem = status.value?.problem;
  if (problem !== undefined) return Date.parse(problem[0]);
  const since = brokenSince.value;
  return since === undefined || now.value - since < GRACE_MILLISECONDS ? undefined : since;
});

export const changes = signal(0);

export const vms = computed(() => {
  changes.value;
  return vmsOf(store.nodes.values(), store.running.values());
});

/** All nodes by name. Each counts the VMs that the list of VMs has for it, which includes those with a CPU mask. */
export const allNodes = computed(() => {
  changes.value;
  const counts = new Map<string, number>();
  for (const { node } of vms.value) counts.set(node, (counts.get(node) ?? 0) + 1);
  const counted = (node: NodeItem): NodeItem => {
    const pods = counts.get(node.name) ?? 0;
    return pods === node.pods ? node : { ...node, pods };
  };
  return nodesByName(store.nodes.values()).map(counted);
});
export const matchingNodes = computed(() => lists.nodes.find(allNodes.value));

export const totals = computed(() => {
  changes.value;
  return totalsOf(store.nodes.values());
});
export const matchingVms = computed(() => lists.vms.find(vms.value));
export const vmsToLookAt = computed(() => vms.value.filter(needsAttention).length);

export const waiting = computed((): readonly PodItem[] => {
  changes.value;
  return [...store.pods.values()];
});
export const waitingBroken = computed(() => waiting.value.filter(isBroken).length);
export const matchingWaiting = computed(() => lists.waiting.find(waiting.value));

const INTERVAL_MILLISECONDS = 250;
let timer: ReturnType<typeof setTimeout> | undefined;
let last = Number.NEGATIVE_INFINITY;

function announce(): void {
  clearTimeout(timer);
  timer = undefined;
  last = performance.now();
  status.value = store.status;
  changes.value++;
}

export function follow(): void {
  let incoming = store;
  new PageConnection({
    onAnew() {
      incoming = new Store();
      // Data that was complete stays until the new data is.
      if (!ready.value) store = incoming;
    },
    onRecords(records) {
      incoming.take(records);
      timer ??= setTimeout(() => requestAnimationFrame(announce), last + INTERVAL_MILLISECONDS - performance.now());
    },
    onReady() {
      store = incoming;
      ready.value = true;
      requestAnimationFrame(announce);
    },
    onState(state, lastMessage) {
      line.value = state;
      if (state === 'live') brokenSince.value = undefined;
      else brokenSince.value ??= lastMessage;
    },
  });
}
