import type { Threads } from '../processes/threads.ts';

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
    const pmd = new Set<number>();
    for (const tid of tids) {
      let known = seen.get(tid);
      if (known?.final !== true) {
        const isPmd = /^pmd-c\d/.test(threads.name(pid, tid) ?? '');
        const first = known?.first ?? at;
        known = { first, isPmd, final: isPmd || at - first >= NAMED_AFTER };
        seen.set(tid, known);
      }
      if (known.isPmd) pmd.add(tid);
    }
    return pmd;
  };
}
