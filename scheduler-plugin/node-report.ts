import type { NodeTopologyStatus } from '../kube/node-topology.ts';
import { CpuSet } from '../model/cpu-set.ts';
import { PlumblineError } from '../model/errors.ts';
import type { Host } from '../model/host.ts';
import type { Kubelet, Unpredictable } from '../model/kubelet/kubelet.ts';
import { hostOfReport, kubeletOfReport, stateOfReport } from '../model/kubelet/report.ts';
import type { KubeletState } from '../model/kubelet/state.ts';
import type { Logger } from '../runtime/log.ts';

/** A node's report, read once and kept until the next. */
export interface NodeReport {
  readonly status: NodeTopologyStatus;
  readonly host: Host;
  readonly kubelet: Kubelet | Unpredictable;
  /** What the kubelet has given away; undefined where it cannot be predicted. */
  readonly state: KubeletState | undefined;
  /** Pods whose CPUs the report shows. */
  readonly reportedUids: ReadonlySet<string>;
}

/** Undefined for a node that has not reported yet, or whose report contradicts itself (which is logged). */
export function readReport(name: string, status: NodeTopologyStatus | undefined, log: Logger): NodeReport | undefined {
  if (status === undefined) return undefined;
  try {
    const host = hostOfReport(status);
    const kubelet = kubeletOfReport(status, host);
    return {
      status,
      host,
      kubelet,
      state: 'unpredictable' in kubelet ? undefined : stateOfReport(kubelet, status),
      reportedUids: new Set(status.assignments.map(({ podUID }) => podUID)),
    };
  } catch (err) {
    if (!(err instanceof PlumblineError)) throw err;
    log.warn({ err, node: name }, 'passed over a report that contradicts itself');
    return undefined;
  }
}

/** The CPUs that nobody owns, reserved ones left out. */
export function freeCpus({ host, status }: NodeReport): CpuSet {
  const owned = status.assignments.reduce((all, { cpus }) => all.union(CpuSet.parse(cpus)), CpuSet.EMPTY);
  return host.online.minus(owned).minus(CpuSet.parse(status.reserved));
}
