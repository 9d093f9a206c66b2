import { readdirSync, readFileSync } from 'node:fs';

/** The threads of processes, as far as the keeper needs to know them. */
export interface Threads {
  /** Thread ids of a process, the main thread's included; empty if it is gone. */
  list(pid: number): number[];
  /** A thread's name; undefined if it is gone. */
  name(pid: number, tid: number): string | undefined;
}

/** Threads as /proc shows them. */
export const procThreads: Threads = {
  list(pid) {
    try {
      return readdirSync(`/proc/${pid}/task`).map(Number);
    } catch {
      return [];
    }
  },
  name(pid, tid) {
    try {
      return readFileSync(`/proc/${pid}/task/${tid}/comm`, 'utf8').trimEnd();
    } catch {
      return undefined;
    }
  },
};

/** Milliseconds after which a thread has the name it will keep: it is born with its parent's and sets its own at once. */
const NAMED_AFTER = 1000;

/**
 * Tells the poll mode driver threads of one ovs-vswitchd, which OVS pins itself: named pmd-c<core>/id:<n>.
 * Source: dp_netdev_configure_pmd and reload in lib/dpif-netdev.c of Open vSwitch.
 */
export function createPmdFinder(pid: number, threads: Threads, now: () => number) {
  const seen = new Map<number, { readonly first: number; readonly isPmd: boolean; readonly final: boolean }>();
  return (tids: readonly number[]): ReadonlySet<number> => {
    const alive = new Set(tids);
    for (const tid of seen.keys()) if (!alive.has(tid)) seen.delete(tid);
    const at = now();
    for (const tid of tids) {
      const known = seen.get(tid);
      if (known?.final) continue;
      const isPmd = /^pmd-c\d/.test(threads.name(pid, tid) ?? '');
      const first = known?.first ?? at;
      seen.set(tid, { first, isPmd, final: isPmd || at - first >= NAMED_AFTER });
    }
    return new Set(tids.filter((tid) => seen.get(tid)?.isPmd));
  };
}
