import { freeCpus, networksOn, type ReportedHost } from '../../diagnosis/hosts.ts';
import type { VmState } from '../../diagnosis/state.ts';
import { cpuOwners } from '../../kube/node-topology.ts';
import { CpuSet, unionOf } from '../../model/cpu-set.ts';
import { PlumblineError } from '../../model/errors.ts';
import type { Host } from '../../model/host.ts';
import { launcherPinRequest, launcherPins } from '../../model/launcher/pins.ts';
import { groupBy } from '../../model/lists.ts';
import { cellsTouched } from '../../model/placement/networks.ts';
import { freeResources } from '../../model/report/check.ts';
import type { VmiShape } from '../../model/shapes.ts';

/** An owner of CPUs of a node. */
interface Owner {
  /** `namespace/name` of the VM, of the pod if it is not a launcher, or of the claim. */
  readonly name: string;
  readonly cpus: CpuSet;
  /** Those of its CPUs without a pinned guest thread: they complete whole cores and serve the emulator. */
  readonly padding: CpuSet;
  /** The state of a VM, as in `plumbline explain`. */
  readonly state?: VmState | undefined;
}

/** A problem of a node, for the administrator. */
export interface Remark {
  readonly reason: 'NodeGone' | 'Cordoned' | 'AgentSilent' | 'DPUNotReady';
  readonly text: string;
}

/** A node for drawing. */
export type NodeMap = ReturnType<typeof viewOf>;

/** The owner of a launcher. */
export interface Launched {
  readonly vmi: VmiShape | undefined;
  /** `namespace/name` of the VM. */
  readonly name: string;
  readonly state?: VmState | undefined;
}

/** @param launched by the uid of the launcher */
export function viewOf(
  { name, status, host: placement }: ReportedHost,
  launched: ReadonlyMap<string, Launched>,
  remarks: readonly Remark[],
) {
  const { host, reserved, polled, networks } = placement;
  const owners = ownersOf(cpuOwners(status), launched, host);
  const free = freeCpus(placement);
  const options = Object.entries(status.cpuManager.options ?? {}).filter(([, value]) => value === 'true');
  return {
    name,
    host,
    cells: host.cells.map(({ id }) => ({ id, networks: networksOn(networks, id) })),
    reserved,
    /** CPUs of Open vSwitch's poll mode drivers. */
    polled,
    owners,
    /** CPUs without an owner: containers without dedicated CPUs and Open vSwitch run there. */
    free,
    /** Number of cores with only free threads. */
    freeCores: host.cores.filter((core) => core.isSubsetOf(free)).length,
    resources: freeResources(status),
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
): Owner[] {
  const owners = [...groupBy(assignments, ({ podUID }) => podUID)].map(([uid, list]): Owner => {
    const cpus = unionOf(list.map((one) => CpuSet.parse(one.cpus)));
    const launcher = launched.get(uid);
    const [first] = list;
    const pod = first?.podName === undefined ? uid : `${first.namespace}/${first.podName}`;
    const compute = list.find(({ container }) => container === 'compute');
    const padding = launcher?.vmi && compute ? paddingOf(launcher.vmi, CpuSet.parse(compute.cpus), host) : CpuSet.EMPTY;
    return { name: launcher?.name ?? pod, cpus, padding, state: launcher?.state };
  });
  return owners.sort((a, b) => (a.cpus.first ?? 0) - (b.cpus.first ?? 0));
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

/** The view in the output of `plumbline top -o json`: docs/schemas/top.json. */
export function viewData(view: NodeMap) {
  const { name, host, cells, reserved, polled, owners, free, freeCores, resources, kubelet, remarks } = view;
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
      ...(owner.state && { state: stateData(owner.state) }),
    })),
    free: free.toArray(),
    freeCores,
    resources: resources.map(([resource, text]) => ({ resource, text })),
  };
}

const stateData = ({ verdict, reason, text }: VmState) => ({ verdict, reason, text });
