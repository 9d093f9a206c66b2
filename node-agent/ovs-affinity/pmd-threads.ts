import type { Threads } from '../processes/threads.ts';

/** Milliseconds after which a thread's name is final: it inherits its parent's name and sets its own at once. */
const NAMED_AFTER = 1000;

/**
 * Finds the poll mode driver threads of an ovs-vswitchd, which OVS pins itself, by their names: pmd-c<core>/id:<n>.
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
