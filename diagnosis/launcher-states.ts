import type { SchedulerFacts } from './facts.ts';
import type { ReportedHost } from './hosts.ts';
import {
  deadDpu,
  type ExplainedNode,
  type ExplainedPod,
  type ExplainedVmi,
  type Occurrence,
  timeOf,
} from './objects.ts';
import { type VmState, vmState } from './state.ts';
import { eventFacts, instanceFacts, kindOf, nodeFacts } from './vm-facts.ts';

/** The objects that determine the states of launchers; what is missing could not be read. */
export interface LauncherObjects {
  readonly nodes: readonly ExplainedNode[];
  readonly hosts: readonly ReportedHost[] | undefined;
  readonly silent: ReadonlySet<string> | undefined;
  readonly instances: readonly ExplainedVmi[];
  readonly scheduler?: SchedulerFacts | undefined;
  /** Milliseconds since 1970. */
  readonly now: number;
  /** Events that matter before a launcher runs. */
  readonly events?: readonly Occurrence[];
}

export const vmiOwner = ({ metadata }: Pick<ExplainedPod, 'metadata'>) =>
  metadata.ownerReferences?.find(({ kind, controller }) => controller === true && kind === 'VirtualMachineInstance');

/** The state of each launcher, as in `plumbline explain`, without checking every node for those that wait. */
export function launcherStates(
  { nodes, hosts, silent, instances, scheduler, now, events = [] }: LauncherObjects,
  launchers: readonly ExplainedPod[],
): Map<ExplainedPod, VmState> {
  const byName = new Map(nodes.map((node) => [node.metadata.name ?? '', node]));
  const reports = hosts && new Map(hosts.map((host) => [host.name, host]));
  const vmis = new Map(instances.map((vmi) => [vmi.metadata.uid ?? '', vmi]));
  const latest = [...events].sort((a, b) => timeOf(b) - timeOf(a));
  return new Map(
    launchers.map((pod) => {
      const { namespace = '', name = '', uid, ownerReferences } = pod.metadata;
      const owner = ownerReferences?.find(({ controller }) => controller === true);
      const vmi = owner && vmis.get(owner.uid);
      const at = pod.spec.nodeName ?? '';
      const node =
        at === '' || reports === undefined
          ? undefined
          : nodeFacts(pod.metadata, deadDpu(byName.get(at)), reports.get(at), silent?.has(at) === true);
      const own = { namespace, name: owner?.name ?? name, kind: kindOf(vmi), instance: vmi && instanceFacts(vmi) };
      const about = latest.filter(({ involvedObject }) => involvedObject.uid === uid);
      return [pod, vmState({ ...own, pod, node, scheduler, silent, now, events: eventFacts(about, uid) })];
    }),
  );
}
