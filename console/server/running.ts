import type { NodeStateFacts } from '../../model/vm-state/facts.ts';
import { runningState, type VmState } from '../../model/vm-state/state.ts';
import type { Cluster } from './cluster.ts';
import type { ShownPod } from './pods.ts';

/** The state of a running pod, as in `plumbline explain`, without knowing whether its instance has a VM. */
export function stateWhereItRuns(
  pod: ShownPod,
  cluster: Pick<Cluster, 'nodes' | 'reports' | 'stale' | 'paused'>,
): Pick<VmState, 'verdict' | 'reason' | 'text'> {
  const { namespace, name, vm, node = '', needs, bypasses } = pod;
  const paused = vm === undefined ? undefined : cluster.paused.get(`${namespace}/${vm}`);
  // During a migration the launcher on the other node is the target.
  const pause = paused?.node === node ? paused.pause : undefined;
  const instance = pause && { phase: 'Running', pause };
  const facts = { namespace, name: vm ?? name, kind: undefined, instance, node: nodeFacts(pod, node, cluster) };
  return runningState(facts, node, needs, bypasses);
}

function nodeFacts(
  { kubeletUid, uid, namespace, name }: ShownPod,
  at: string,
  { nodes, reports, stale }: Pick<Cluster, 'nodes' | 'reports' | 'stale'>,
): NodeStateFacts {
  const node = nodes.get(at);
  const report = reports.get(at);
  const refusal = report?.refusals.find((one) =>
    one.podUID === undefined ? one.namespace === namespace && one.podName === name : one.podUID === uid,
  );
  return {
    deadDpu: node?.dpuReady === 'False' ? (node.dpuMessage ?? 'its lease has expired') : undefined,
    silent: stale.has(at),
    host: report?.shape?.empty,
    assigned: (report?.assignments ?? []).filter(({ podUID }) => podUID === kubeletUid).map(({ cpus }) => cpus),
    pinning: report?.pinning.find(({ podUID }) => podUID === uid),
    refusedStart: refusal?.message,
  };
}
