import { hostsOf } from '../../diagnosis/hosts.ts';
import { deadDpu } from '../../diagnosis/objects.ts';
import { type Vm, vmiOwner, vmsOf } from '../../diagnosis/vms.ts';
import type { KubeClient } from '../../kube/client.ts';
import { isFinalPhase } from '../../kube/cluster-view/pods.ts';
import { byName, groupBy } from '../../model/lists.ts';
import { notFound } from '../support/exit-status.ts';
import { INSTANCES, LAUNCHERS, MACHINES, MIGRATIONS, NODES } from '../support/kinds.ts';
import { assertReported, readAgentLeases, readIfAllowed, readTopologies } from '../support/lists.ts';
import { ageText } from '../support/output.ts';
import { type Launched, type NodeMap, type Remark, viewOf } from './view.ts';

export interface TopView {
  readonly nodes: readonly NodeMap[];
  readonly notes: readonly string[];
}

/** @param selection nodes; empty: all @param now milliseconds since 1970 @throws CliError, KubeError */
export async function readTop(client: KubeClient, selection: readonly string[], now: number): Promise<TopView> {
  const [topologies, nodes, pods, vmis, machines, migrations, agents] = await Promise.all([
    readTopologies(client),
    readIfAllowed(client, ...NODES),
    readIfAllowed(client, ...LAUNCHERS),
    readIfAllowed(client, ...INSTANCES),
    readIfAllowed(client, ...MACHINES),
    readIfAllowed(client, ...MIGRATIONS),
    readAgentLeases(client, now),
  ]);
  assertReported(topologies);
  const names = new Set(topologies.map(({ metadata }) => metadata.name ?? ''));
  const absent = selection.filter((name) => !names.has(name));
  if (absent.length > 0) {
    const which =
      absent.length === 1 ? `node ${absent[0]} does not report its` : `nodes ${absent.join(', ')} do not report their`;
    throw notFound(`${which} topology (kubectl get ntopo lists those that do)`);
  }
  const isSelected = (name = '') => selection.length === 0 || selection.includes(name);
  const { hosts, unusable } = hostsOf(topologies.filter(({ metadata }) => isSelected(metadata.name)));
  const nodesByName = new Map((nodes ?? []).map((node) => [node.metadata.name ?? '', node]));
  const launchers = (pods ?? []).filter((pod) => vmiOwner(pod) !== undefined);
  const instances = vmis ?? [];
  const silent = agents?.silent;
  const vms = vmsOf({ nodes: nodes ?? [], hosts, silent, instances, machines, launchers, migrations, now });
  const launched = new Map(vms.flatMap(launchedOf));
  const remarksOf = (name: string): Remark[] => {
    const node = nodesByName.get(name);
    const candidates: (Remark | false | undefined)[] = [
      nodes !== undefined && node === undefined && { reason: 'NodeGone', text: 'gone' },
      node?.spec?.unschedulable === true && { reason: 'Cordoned', text: 'cordoned' },
      silent?.has(name) && { reason: 'AgentSilent', text: silentText(agents?.ages.get(name)) },
      deadDpu(node) !== undefined && { reason: 'DPUNotReady', text: 'DPU not ready' },
    ];
    return candidates.filter((remark) => remark !== undefined && remark !== false);
  };
  const bound = groupBy(
    launchers.filter(({ spec, status }) => spec.nodeName && !isFinalPhase(status?.phase)),
    ({ spec }) => spec.nodeName ?? '',
  );
  return {
    nodes: hosts
      .map((host) => viewOf(host, launched, remarksOf(host.name), bound.get(host.name)))
      .sort(byName(({ name }) => name)),
    notes: [
      ...[...unusable].map(([name, why]) => `${name} is not shown: ${why}`),
      ...(pods === undefined ? ['you may not read pods: the map shows launchers instead of VMs'] : []),
    ],
  };
}

/** The launchers of a VM, by their uids. The one that waits for a guest, or has lost it, is no second VM. */
function launchedOf({ namespace, name, instance, launchers, state }: Vm): [string, Launched][] {
  const target = state.state === 'migrating' ? state.migration.launcher : undefined;
  const roles = new Map([
    [state.launcher, ''],
    [target, ' (migration target)'],
  ]);
  return launchers.map(({ metadata: { uid = '' } }) => {
    const role = roles.get(uid) ?? ' (ending)';
    return [uid, { name: `${namespace}/${name}${role}`, vmi: instance, state: role === '' ? state : undefined }];
  });
}

/** @param age seconds since the last renewal of the agent's Lease */
function silentText(age: number | undefined): string {
  return `its agent is silent${age === undefined ? '' : `: report ${ageText(age)} old`}`;
}
