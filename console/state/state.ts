import { computed, signal } from '@preact/signals';
import { connect, type LineState } from '../data/connection.ts';
import { byName, findNodes, totalsOf } from '../data/node-list.ts';
import { type PodItem, Store } from '../data/store.ts';
import { findVms, needsAttention, vmsOf } from '../data/vm-list.ts';
import type { Status } from '../data/wire.ts';
import { nodeQuery, vmQuery } from './route.ts';

/** The cluster. The signals below announce its changes to the page. */
export let store = new Store();

export const line = signal<LineState>('connecting');
/** Milliseconds of the monotonic clock since which there is no connection. */
export const brokenSince = signal<number | undefined>(undefined);
/** Whether the first snapshot is complete. */
export const ready = signal(false);
export const status = signal<Status | undefined>(undefined);

/** Increases with changes of the store. */
export const changes = signal(0);

/** The nodes to list, in order. */
export const order = computed(() => {
  changes.value;
  return findNodes(byName(store.nodes.values()), nodeQuery.value);
});

export const totals = computed(() => {
  changes.value;
  return totalsOf(store.nodes.values());
});

/** All running VMs, and those that match the list's query. */
export const vms = computed(() => {
  changes.value;
  return vmsOf(store.nodes.values(), store.running.values());
});
export const foundVms = computed(() => findVms(vms.value, vmQuery.value));
/** Number of running VMs that are not as promised. */
export const vmsToLookAt = computed(() => vms.value.filter(needsAttention).length);

/** Waiting pods, longest waiting first. */
export const waiting = computed((): readonly PodItem[] => {
  changes.value;
  const oldest = (pod: PodItem) => pod.since ?? '~';
  return [...store.pods.values()].sort(
    (a, b) => Number(oldest(a) > oldest(b)) - Number(oldest(a) < oldest(b)) || Number(a.key > b.key) - 0.5,
  );
});

const INTERVAL_MILLISECONDS = 250;
let timer: ReturnType<typeof setTimeout> | undefined;
let last = Number.NEGATIVE_INFINITY;

/** Announces changes at an interval, in a frame: a hidden page renders nothing. */
function schedule(): void {
  timer ??= setTimeout(() => requestAnimationFrame(announce), last + INTERVAL_MILLISECONDS - performance.now());
}

function announce(): void {
  clearTimeout(timer);
  timer = undefined;
  last = performance.now();
  status.value = store.status;
  changes.value++;
}

/** Opens the connection; from now on the signals follow the cluster. */
export function follow(): void {
  let incoming = store;
  connect({
    onAnew() {
      incoming = new Store();
      // Data that was complete stays until the new data is.
      if (!ready.value) store = incoming;
    },
    onRecords(records) {
      incoming.take(records);
      schedule();
    },
    onReady() {
      store = incoming;
      ready.value = true;
      requestAnimationFrame(announce);
    },
    onState(state) {
      line.value = state;
      if (state === 'live') brokenSince.value = undefined;
      else brokenSince.value ??= performance.now();
    },
  });
}
