import type { GuestParts } from '../../../node-agent/vm-pinning/guest.ts';
import { set } from '../support.ts';
import { FakeAffinity } from './stage.ts';

interface PretendProcess {
  name: string;
  start: number;
  identity: number;
  readonly threads: Map<number, string>;
}

/** Processes as /proc shows them. */
export function machine() {
  const affinity = new FakeAffinity();
  const processes = new Map<number, PretendProcess>();
  const time = { now: 50_000 };
  const parts: GuestParts = {
    affinity,
    threads: {
      list: (pid) => [...(processes.get(pid)?.threads.keys() ?? [])],
      name: (pid, tid) => processes.get(pid)?.threads.get(tid),
      has: (pid, tid) => processes.get(pid)?.threads.has(tid) === true,
    },
    processes: {
      name: (pid) => processes.get(pid)?.name,
      start: (pid) => processes.get(pid)?.start,
      identity: (pid) => processes.get(pid)?.identity,
    },
    nowSeconds: () => time.now / 1000,
  };
  const add = (pid: number, name: string, threads: Record<number, string>, cpus = '0-7') => {
    processes.set(pid, {
      name,
      start: pid * 10,
      identity: pid,
      threads: new Map(Object.entries(threads).map(([tid, thread]) => [Number(tid), thread])),
    });
    for (const tid of Object.keys(threads)) affinity.masks.set(Number(tid), set(cpus));
  };
  return { affinity, processes, time, parts, add };
}
