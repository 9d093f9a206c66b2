import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { CpuSet } from '../../../model/cpu-set.ts';
import { createAffinity, SyscallError, type ThreadAffinity } from '../../../native/affinity.ts';
import type { OvsAffinity } from '../../../node-agent/ovs-affinity/ovs-affinity.ts';
import { ProcessAffinity } from '../../../node-agent/ovs-affinity/process-affinity.ts';
import { AffinityEvents } from '../../../node-agent/ovs-affinity/reporting.ts';
import { bootId, procThreads } from '../../../node-agent/processes/proc.ts';
import { createLogger } from '../../../runtime/log.ts';
import { recordingEvents, set, settableView, testMetrics } from '../support.ts';

type OvsAffinityDeps = ConstructorParameters<typeof OvsAffinity>[0];

/** The online CPUs of this machine. */
export const machine = (): CpuSet => CpuSet.parse(readFileSync('/sys/devices/system/cpu/online', 'utf8'));
export const cpus = (text: string): CpuSet => CpuSet.parse(text);

/** Tests with real threads need distinguishable CPUs: the first one, and the others. */
export const first = (): string => String(machine().first);
export const rest = (): string => machine().minus(cpus(first())).toString();
export const all = (): string => machine().toString();

/** Counts the calls that change something. */
export function countingAffinity(): ThreadAffinity & { sets: number } {
  const affinity = createAffinity();
  const counting = {
    sets: 0,
    get: affinity.get,
    set(tid: number, words: Uint32Array) {
      counting.sets++;
      affinity.set(tid, words);
    },
  };
  return counting;
}

/** All parts of the duty, for real threads of this machine; a test replaces parts. */
export function ovsParts(directory: string, changes: Partial<OvsAffinityDeps> = {}): OvsAffinityDeps {
  return {
    affinity: createAffinity(),
    threads: procThreads,
    machine,
    nowSeconds: () => performance.now() / 1000,
    rundir: join(directory, 'run'),
    enablerFile: join(directory, 'etc/enable'),
    masksFile: join(directory, 'state/masks.json'),
    bootId: bootId(),
    growthDelay: 0,
    checkInterval: 5,
    containers: () => ({ guaranteed: [], others: [] }),
    isolated: () => CpuSet.EMPTY,
    pmdMask: () => CpuSet.EMPTY,
    onPmdMask: () => () => {},
    assignments: settableView({ free: machine() }),
    assignedAt: () => undefined,
    events: new AffinityEvents({ recorder: recordingEvents().recorder, nodeName: 'n', nowSeconds: () => 0 }),
    log: createLogger('test', 'silent'),
    metrics: testMetrics(),
    ...changes,
  };
}

const PID = 100;

/** A kernel with one process: masks by thread, names, a cpuset. It counts every requested change. */
export class FakeKernel {
  readonly masks = new Map<number, CpuSet>();
  readonly names = new Map<number, string>();
  /** The start time of a thread, if it is not 0. */
  readonly born = new Map<number, number>();
  online = '0-15';
  cpuset = '0-63';
  sets = 0;
  onSet = (_tid: number) => {};
  now = 0;
  /** The start time of the process. Another process with the same pid has another one. */
  identity = 1;

  thread(tid: number, mask: string, name = 'handler'): void {
    this.masks.set(tid, set(mask));
    this.names.set(tid, name);
  }

  readonly affinity: ThreadAffinity = {
    get: (tid) => {
      return this.mask(tid, 'sched_getaffinity').intersect(set(this.online)).toWords(32);
    },
    set: (tid, words) => {
      this.sets++;
      this.mask(tid, 'sched_setaffinity');
      const allowed = CpuSet.fromWords(words).intersect(set(this.cpuset)).intersect(set(this.online));
      if (allowed.isEmpty) throw new SyscallError('sched_setaffinity', tid, 22);
      this.masks.set(tid, allowed);
      this.onSet(tid);
    },
  };

  private mask(tid: number, call: string): CpuSet {
    const mask = this.masks.get(tid);
    if (mask === undefined) throw new SyscallError(call, tid, 3);
    return mask;
  }

  maskTexts(): Record<number, string> {
    return Object.fromEntries([...this.masks].map(([tid, mask]) => [tid, mask.toString()]));
  }

  keeper(name: 'ovs-vswitchd' | 'ovsdb-server' = 'ovs-vswitchd'): ProcessAffinity {
    return new ProcessAffinity(
      { name, role: 'daemon', pid: PID, start: 0 },
      {
        affinity: this.affinity,
        threads: {
          list: () => [...this.masks.keys()],
          has: (_pid, tid) => this.masks.has(tid),
          summary: () => ({ count: this.masks.size, identity: this.identity }),
          name: (_pid, tid) => this.names.get(tid),
          start: (_pid, tid) => (this.masks.has(tid) ? (this.born.get(tid) ?? 0) : undefined),
        },
        machine: () => set(this.online),
        nowSeconds: () => this.now / 1000,
      },
    );
  }
}
