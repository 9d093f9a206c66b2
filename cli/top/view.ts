import { freeCpus, networksOn, ownerLetter, ownersByCpu, type ReportedHost } from '../../diagnosis/hosts.ts';
import type { ExplainedPod } from '../../diagnosis/objects.ts';
import type { VmState } from '../../diagnosis/state.ts';
import { isLauncherName } from '../../diagnosis/vm-facts.ts';
import { timeCreated } from '../../diagnosis/vms.ts';
import { cpuOwners } from '../../kube/node-topology.ts';
import { briefMask } from '../../model/cpu-mask/mask.ts';
import { CpuSet, unionOf } from '../../model/cpu-set.ts';
import { PlumblineError } from '../../model/errors.ts';
import type { Host } from '../../model/host.ts';
import { launcherPinRequest, launcherPins } from '../../model/launcher/pins.ts';
import { type PlacementHost, withPod } from '../../model/placement/needs.ts';
import { cellsTouched } from '../../model/placement/networks.ts';
import { isExclusive, readableNeedsOf } from '../../model/placement/preferences.ts';
import { freeResources } from '../../model/report/check.ts';
import type { VmiShape } from '../../model/shapes.ts';

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

export interface Remark {
  readonly reason: 'NodeGone' | 'Cordoned' | 'AgentSilent' | 'DPUNotReady';
  readonly text: string;
}

export type NodeMap = ReturnType<typeof viewOf>;

export interface Launched {
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
  const { kubeletVersion, cpuManager, topologyManager } = status;
  const options = Object.entries(cpuManager.options ?? {}).filter(([, value]) => value === 'true');
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
    kubelet: [kubeletVersion, cpuManager.policy, ...options.map(([key]) => key), topologyManager?.policy]
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
    const { podUID: uid = '', namespace, podName } = list[0] ?? {};
    const launcher = launched.get(uid);
    const pod = podName === undefined ? uid : `${namespace}/${podName}`;
    const compute = list.find(({ container }) => container === 'compute');
    const padding = launcher?.vmi && compute ? paddingOf(launcher.vmi, CpuSet.parse(compute.cpus), host) : CpuSet.EMPTY;
    const isGone = isOld && launcher === undefined && isLauncherName(podName ?? '');
    const name = launcher?.name ?? (isGone ? `${pod} (gone)` : pod);
    return { name, letter: ownerLetter(index), cpus, padding, state: launcher?.state };
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

/** A VM with a CPU mask, which owns no CPUs. */
function maskedOf(pod: ExplainedPod, launched: ReadonlyMap<string, Launched>) {
  const mask = readableNeedsOf(pod)?.mask;
  if (mask === undefined) return [];
  const { name, state } = launched.get(pod.metadata.uid ?? '') ?? { name: nameOf(pod) };
  return [{ name, mask: briefMask(mask.mask), state }];
}

/** Computed as in virt-launcher, because no object records its pins. */
function paddingOf(vmi: VmiShape, cpus: CpuSet, host: Host): CpuSet {
  const siblingsOf = (cpu: number) => host.cores.find((core) => core.has(cpu))?.toArray() ?? [];
  const cells = host.cells.map(({ cpus }) => cpus.toArray().map((cpu) => ({ cpu, siblings: siblingsOf(cpu) })));
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
  const { name, host, cells, owners, masked, freeCores, resources, kubelet, remarks } = view;
  const cpusOf = (cell: number) => host.cells.find(({ id }) => id === cell)?.cpus.toArray() ?? [];
  return {
    node: name,
    kubelet,
    remarks,
    cpus: host.online.toArray(),
    cores: host.cores.map((core) => core.toArray()),
    cells: cells.map(({ id, networks }) => ({ id, cpus: cpusOf(id), networks })),
    reserved: view.reserved.toArray(),
    polled: view.polled.toArray(),
    owners: owners.map((owner) => ({
      name: owner.name,
      cpus: owner.cpus.toArray(),
      numaNodes: [...cellsTouched(host, owner.cpus)],
      padding: owner.padding.toArray(),
      ...(owner.isPredicted && { predicted: true }),
      ...(owner.state && { state: stateData(owner.state) }),
    })),
    masked: masked.map(({ name: vm, mask, state }) => ({ name: vm, mask, ...(state && { state: stateData(state) }) })),
    free: view.free.toArray(),
    freeCores,
    resources: resources.map(([resource, text]) => ({ resource, text })),
  };
}
