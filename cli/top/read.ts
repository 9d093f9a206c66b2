import { freeCpus, hostsOf, networksOn, type ReportedHost } from '../../diagnosis/hosts.ts';
import { deadDpu, type ExplainedPod } from '../../diagnosis/objects.ts';
import { ownerLetter, ownersByCpu } from '../../diagnosis/owner-letters.ts';
import type { VmState } from '../../diagnosis/state.ts';
import { isLauncherName } from '../../diagnosis/vm-facts.ts';
import { timeCreated, type Vm, vmiOwner, vmsOf } from '../../diagnosis/vms.ts';
import type { KubeClient } from '../../kube/client.ts';
import { cpuOwners } from '../../kube/node-topology.ts';
import { briefMask } from '../../model/cpu-mask/mask.ts';
import { CpuSet, unionOf } from '../../model/cpu-set.ts';
import { PlumblineError } from '../../model/errors.ts';
import type { Host } from '../../model/host.ts';
import { launcherPinRequest, launcherPins } from '../../model/launcher/pins.ts';
import { byName, groupBy } from '../../model/lists.ts';
import { type PlacementHost, withPod } from '../../model/placement/needs.ts';
import { cellsTouched } from '../../model/placement/networks.ts';
import { isExclusive, readableNeedsOf } from '../../model/placement/preferences.ts';
import { freeResources } from '../../model/report/check.ts';
import type { VmiShape } from '../../model/shapes.ts';
import { notFound } from '../support/exit-status.ts';
import { INSTANCES, LAUNCHERS, MACHINES, MIGRATIONS, NODES } from '../support/kinds.ts';
import { assertReported, readAgentLeases, readIfAllowed, readTopologies } from '../support/lists.ts';
import { ageText } from '../support/output.ts';

export interface TopView {
  readonly nodes: readonly NodeMap[];
  readonly notes: readonly string[];
}

const remarkIf = (isTrue: boolean, reason: Remark['reason'], text: string): Remark[] =>
  isTrue ? [{ reason, text }] : [];

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
  const chosen =
    selection.length === 0 ? topologies : topologies.filter(({ metadata }) => selection.includes(metadata.name ?? ''));
  const { hosts, unusable } = hostsOf(chosen);
  const nodesByName = new Map((nodes ?? []).map((node) => [node.metadata.name ?? '', node]));
  const launchers = (pods ?? []).filter((pod) => vmiOwner(pod) !== undefined);
  const vms = vmsOf({
    nodes: nodes ?? [],
    hosts,
    silent: agents?.silent,
    instances: vmis ?? [],
    machines,
    launchers,
    migrations,
    now,
  });
  const launched = new Map(vms.flatMap(launchedOf));
  const remarksOf = (name: string): Remark[] => [
    ...remarkIf(nodes !== undefined && !nodesByName.has(name), 'NodeGone', 'gone'),
    ...remarkIf(nodesByName.get(name)?.spec?.unschedulable === true, 'Cordoned', 'cordoned'),
    ...remarkIf(agents?.silent.has(name) === true, 'AgentSilent', silentText(agents?.ages.get(name))),
    ...remarkIf(deadDpu(nodesByName.get(name)) !== undefined, 'DPUNotReady', 'DPU not ready'),
  ];
  const bound = groupBy(
    launchers.filter(({ spec, status }) => spec.nodeName && !['Failed', 'Succeeded'].includes(status?.phase ?? '')),
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

const nameOf = ({ metadata }: ExplainedPod) => `${metadata.namespace}/${metadata.name}`;

interface Owner {
  /** `namespace/name` of the VM, of the pod if it is not a launcher, or of the claim. */
  readonly name: string;
  readonly letter: string;
  readonly cpus: CpuSet;
  readonly padding: CpuSet;
  readonly state?: VmState | undefined;
  /** It was placed since the last report: the CPUs are those that the kubelet’s rules give it. */
  readonly isPredicted?: true;
}

/** A VM with a CPU mask, which owns no CPUs. */
interface Masked {
  readonly name: string;
  readonly mask: string;
  readonly state?: VmState | undefined;
}

interface Remark {
  readonly reason: 'NodeGone' | 'Cordoned' | 'AgentSilent' | 'DPUNotReady';
  readonly text: string;
}

export type NodeMap = ReturnType<typeof viewOf>;

interface Launched {
  readonly vmi: VmiShape | undefined;
  readonly name: string;
  readonly state?: VmState | undefined;
}

/** @param bound the node's launchers that have not ended */
export function viewOf(
  { name, status, host: reported }: ReportedHost,
  launched: ReadonlyMap<string, Launched>,
  remarks: readonly Remark[],
  bound: readonly ExplainedPod[] = [],
) {
  const { host, reserved, polled, networks } = reported;
  const isOld = remarks.some(({ reason }) => reason === 'AgentSilent');
  const reportedOwners = ownersOf(cpuOwners(status), launched, host, isOld);
  const { placement, added } = placedSince(reported, bound, launched, reportedOwners.length);
  const owners = [...reportedOwners, ...added];
  const free = freeCpus(placement);
  const options = Object.entries(status.cpuManager.options ?? {}).filter(([, value]) => value === 'true');
  return {
    name,
    host,
    cells: host.cells.map(({ id }) => ({ id, networks: networksOn(networks, id) })),
    reserved,
    polled,
    owners,
    masked: bound.flatMap((pod) => maskedOf(pod, launched)),
    free,
    freeCores: host.cores.filter((core) => core.isSubsetOf(free)).length,
    resources: freeResources(status),
    disturbed: status.interference ?? [],
    kubelet: [
      status.kubeletVersion,
      status.cpuManager.policy,
      ...options.map(([key]) => key),
      status.topologyManager?.policy,
    ]
      .filter((text) => text !== undefined)
      .join(' '),
    remarks,
  };
}

function ownersOf(
  assignments: ReportedHost['status']['assignments'],
  launched: ReadonlyMap<string, Launched>,
  host: Host,
  isOld: boolean,
): Owner[] {
  return ownersByCpu(assignments).map((list, index): Owner => {
    const cpus = unionOf(list.map((claim) => CpuSet.parse(claim.cpus)));
    const [first] = list;
    const uid = first?.podUID ?? '';
    const launcher = launched.get(uid);
    const pod = first?.podName === undefined ? uid : `${first.namespace}/${first.podName}`;
    const compute = list.find(({ container }) => container === 'compute');
    const padding = launcher?.vmi && compute ? paddingOf(launcher.vmi, CpuSet.parse(compute.cpus), host) : CpuSet.EMPTY;
    const isGone = isOld && launcher === undefined && isLauncherName(first?.podName ?? '');
    return {
      name: launcher?.name ?? (isGone ? `${pod} (gone)` : pod),
      letter: ownerLetter(index),
      cpus,
      padding,
      state: launcher?.state,
    };
  });
}

/** The CPUs of launchers that the report does not have yet, in the order in which they were created. */
function placedSince(
  reported: PlacementHost,
  bound: readonly ExplainedPod[],
  launched: ReadonlyMap<string, Launched>,
  letters: number,
) {
  const added: Owner[] = [];
  let placement = reported;
  const missing = bound.filter(({ metadata }) => !reported.owners.has(metadata.uid ?? ''));
  for (const pod of missing.toSorted((a, b) => timeCreated(a) - timeCreated(b))) {
    const needs = readableNeedsOf(pod);
    if (needs === undefined || !isExclusive(needs)) continue;
    const after = withPod(placement, needs.request);
    const cpus = after.owned.minus(placement.owned);
    placement = after;
    if (cpus.isEmpty) continue;
    const { name, state } = launched.get(pod.metadata.uid ?? '') ?? { name: nameOf(pod) };
    const letter = ownerLetter(letters + added.length);
    added.push({ name: `${name} (predicted)`, letter, cpus, padding: CpuSet.EMPTY, state, isPredicted: true });
  }
  return { placement, added };
}

function maskedOf(pod: ExplainedPod, launched: ReadonlyMap<string, Launched>): Masked[] {
  const mask = readableNeedsOf(pod)?.mask;
  if (mask === undefined) return [];
  const { name, state } = launched.get(pod.metadata.uid ?? '') ?? { name: nameOf(pod) };
  return [{ name, mask: briefMask(mask.mask), state }];
}

/** Computed as in virt-launcher, because no object records its pins. */
function paddingOf(vmi: VmiShape, cpus: CpuSet, host: Host): CpuSet {
  const cells = host.cells.map((cell) =>
    cell.cpus.toArray().map((cpu) => ({
      cpu,
      siblings: host.cores.find((core) => core.has(cpu))?.toArray() ?? [],
    })),
  );
  try {
    return CpuSet.of(launcherPins(launcherPinRequest(vmi, cpus, cells)).spare);
  } catch (error) {
    if (error instanceof PlumblineError) return CpuSet.EMPTY;
    throw error;
  }
}

const stateData = ({ verdict, reason, text }: VmState) => ({ verdict, reason, text });

/** The view in the output of `plumbline top -o json`: docs/schemas/top.json. */
export function viewData(view: NodeMap) {
  const { name, host, cells, reserved, polled, owners, masked, free, freeCores } = view;
  const { resources, kubelet, remarks } = view;
  return {
    node: name,
    kubelet,
    remarks: [...remarks],
    cpus: host.online.toArray(),
    cores: host.cores.map((core) => core.toArray()),
    cells: cells.map(({ id, networks }) => ({
      id,
      cpus: host.cells.find((cell) => cell.id === id)?.cpus.toArray() ?? [],
      networks: [...networks],
    })),
    reserved: reserved.toArray(),
    polled: polled.toArray(),
    owners: owners.map((owner) => ({
      name: owner.name,
      cpus: owner.cpus.toArray(),
      numaNodes: [...cellsTouched(host, owner.cpus)],
      padding: owner.padding.toArray(),
      ...(owner.isPredicted && { predicted: true }),
      ...(owner.state && { state: stateData(owner.state) }),
    })),
    masked: masked.map(({ name: vm, mask, state }) => ({ name: vm, mask, ...(state && { state: stateData(state) }) })),
    free: free.toArray(),
    freeCores,
    resources: resources.map(([resource, text]) => ({ resource, text })),
  };
}
