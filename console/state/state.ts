import { computed, signal } from '@preact/signals';
import { connect, type LineState } from '../data/connection.ts';
import { byName, findNodes } from '../data/node-list.ts';
import { type PodItem, Store } from '../data/store.ts';
import { totalsOf } from '../data/totals.ts';
import { findVms, needsAttention, vmsOf } from '../data/vm-list.ts';
import type { Status } from '../data/wire.ts';
import { nodeQuery, vmQuery } from './queries.ts';

/** The cluster. The signals below announce its changes to the page. */
export const store = new Store();

export const line = signal<LineState>('connecting');
/** Milliseconds of the monotonic clock since which there is no connection. */
export const brokenSince = signal<number | undefined>(undefined);
/** Whether the first snapshot is complete. */
export const ready = signal(false);
export const status = signal<Status | undefined>(undefined);

/** Changes of nodes, at most once per frame. */
export const nodeChanges = signal(0);
/** The same for results that depend on all nodes, for which twice a second is enough. */
const nodeChangesSlow = signal(0);
export const podChanges = signal(0);

const names = computed(() => {
  namings.value;
  return byName(store.nodes.values()).map(({ id }) => id);
});
const namings = signal(0);

/** The indexes of the nodes to list, in order. */
export const order = computed(() => {
  nodeChangesSlow.value;
  const nodes = names.value.flatMap((id) => store.nodes.get(id) ?? []);
  return findNodes(nodes, nodeQuery.value);
});

export const totals = computed(() => {
  nodeChangesSlow.value;
  return totalsOf(store.nodes.values());
});

/** All running VMs, and those that match the list's query. */
export const vms = computed(() => {
  nodeChangesSlow.value;
  return vmsOf(store.nodes.values(), store.running.values());
});
export const foundVms = computed(() => findVms(vms.value, vmQuery.value));
/** Running VMs that are not as promised. They have records, so that the others need not be checked. */
export const vmsToLookAt = computed(() => {
  nodeChangesSlow.value;
  let count = 0;
  for (const [, , , verdict] of store.running.values()) if (needsAttention({ verdict })) count++;
  return count;
});

/** Waiting pods, longest waiting first. */
export const waiting = computed((): readonly PodItem[] => {
  podChanges.value;
  const oldest = (pod: PodItem) => pod.since ?? '~';
  return [...store.pods.values()].sort(
    (a, b) => Number(oldest(a) > oldest(b)) - Number(oldest(a) < oldest(b)) || Number(a.key > b.key) - 0.5,
  );
});

const SLOW = 500;
let frame = 0;
let slow: ReturnType<typeof setTimeout> | undefined;
let slowLast = Number.NEGATIVE_INFINITY;

/** Signals changes in the next frame; a hidden page renders nothing. */
function schedule(): void {
  if (frame === 0) frame = requestAnimationFrame(tell);
  slow ??= setTimeout(tellSlow, Math.max(0, slowLast + SLOW - performance.now()));
}

function tell(): void {
  frame = 0;
  nodeChanges.value = store.changes;
  podChanges.value = store.podChanges;
  status.value = store.status;
}

function tellSlow(): void {
  slow = undefined;
  slowLast = performance.now();
  namings.value = store.namings;
  nodeChangesSlow.value = store.changes;
}

/** Opens the connection; from now on the signals follow the cluster. */
export function follow(): void {
  connect({
    onRecords(records) {
      store.take(records);
      schedule();
    },
    onAnew() {
      store.clear();
      ready.value = false;
      schedule();
    },
    onReady() {
      ready.value = true;
      clearTimeout(slow);
      slowLast = Number.NEGATIVE_INFINITY;
      slow = setTimeout(tellSlow, 0);
      schedule();
    },
    onState(state) {
      line.value = state;
      if (state === 'live') brokenSince.value = undefined;
      else brokenSince.value ??= performance.now();
    },
  });
}
