import { SCHEDULER } from '../../../model/names.ts';
import { type VmState, vmState } from '../../../model/vm-state/state.ts';
import { type ExplainedPod, timeOf } from '../../explain/objects.ts';
import { eventFacts, instanceFacts, kindOf, nodeFacts } from '../../explain/vm-facts.ts';
import { leaderless } from '../../extender/election.ts';
import { hostsOf } from '../../support/hosts.ts';
import type { Facts } from './facts.ts';

/** The state of each launcher, from the same table as `plumbline explain` (model/vm-state). */
export function launcherStates(facts: Facts, launchers: readonly ExplainedPod[]): Map<ExplainedPod, VmState> {
  const { nodes, topologies, agents, instances, cannotEvict, schedulerElection } = facts;
  const byName = new Map(nodes.map((node) => [node.metadata.name ?? '', node]));
  const reports = new Map(hostsOf(topologies.value ?? []).hosts.map((one) => [one.name, one]));
  const vmis = new Map((instances.value ?? []).map((vmi) => [vmi.metadata.uid ?? '', vmi]));
  const away = schedulerElection.missing === 'forbidden' ? undefined : leaderless(SCHEDULER, schedulerElection.value);
  const scheduler = schedulerElection.missing === 'forbidden' ? {} : { leads: away === undefined, away };
  const stuck = [...(cannotEvict.value ?? [])].sort((a, b) => timeOf(b) - timeOf(a));
  const states = launchers.map((pod): [ExplainedPod, VmState] => {
    const { namespace = '', name = '', uid, ownerReferences } = pod.metadata;
    const owner = ownerReferences?.find(({ controller }) => controller === true);
    const vmi = owner && vmis.get(owner.uid);
    const at = pod.spec.nodeName ?? '';
    const unknown = at === '' || topologies.missing === 'forbidden';
    const node = unknown
      ? undefined
      : nodeFacts(pod, byName.get(at), reports.get(at), agents.value?.silent.has(at) === true);
    const events = eventFacts(
      stuck.filter(({ involvedObject }) => involvedObject.uid === uid),
      uid,
    );
    const own = { namespace, name: owner?.name ?? name, kind: kindOf(vmi), instance: vmi && instanceFacts(vmi) };
    return [pod, vmState({ ...own, pod, node, scheduler, events })];
  });
  return new Map(states);
}
