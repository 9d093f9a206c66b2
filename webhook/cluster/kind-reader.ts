import { createHash } from 'node:crypto';
import type * as z from 'zod';
import { nodeTopologyStatus } from '../../kube/node-topology.ts';
import { BoundedMap } from '../../model/bounded-map.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import { createHost, type Host, MAX_CELL_ID } from '../../model/host.ts';
import type { NodeKind } from '../../model/launcher/smt-affinity.ts';
import { physnetResource, TUNNEL_RESOURCE } from '../../model/names.ts';
import type { MaskHost } from '../../model/placement/mask-fit.ts';
import { roomsOf } from '../../model/placement/networks.ts';
import { faultOfError } from '../../model/report/check.ts';

/** The part of a report that determines the kind. Assignments, the largest part, are not parsed. */
const kindStatus = nodeTopologyStatus.pick({
  format: true,
  cells: true,
  cores: true,
  counts: true,
  reserved: true,
  devices: true,
  pinsVMs: true,
  cpuManager: true,
  topologyManager: true,
  physnets: true,
  tunnel: true,
});
type KindStatus = z.infer<typeof kindStatus>;

export type ReadReport = ReturnType<typeof readStatus>;

/** Number of shared kinds; the oldest is dropped first, so a node with ever new reports does not fill memory. */
const MAX_SHARED_KINDS = 512;

/** Creates a reader of raw reports. Nodes of the same model share their result. */
export function createKindReader() {
  const shared = new BoundedMap<string, ReadReport>(MAX_SHARED_KINDS);
  return (raw: unknown): ReadReport => {
    const parsed = kindStatus.safeParse(raw);
    if (!parsed.success) return faultOfError(parsed.error);
    return shared.getOrCreate(digest(parsed.data), () => readStatus(parsed.data));
  };
}

/** Has a limited length whatever the report contains. */
function digest(status: KindStatus): string {
  const { cells, cores, counts, reserved, cpuManager, topologyManager, physnets, tunnel, pinsVMs } = status;
  const devices = status.devices?.map(({ resource, groups }) => [resource, groups.map(({ total }) => total)]);
  const settings = [cpuManager.policy, cpuManager.options?.['full-pcpus-only'], topologyManager?.policy, pinsVMs];
  return createHash('sha256')
    .update(JSON.stringify([cells, cores, counts, reserved, settings, physnets, tunnel, devices]))
    .digest('base64');
}

function readStatus(status: KindStatus) {
  try {
    const host = createHost(status);
    const { online, threadsPerCore } = host;
    const reserved = CpuSet.parse(status.reserved);
    /** Undefined for a node whose kubelet assigns no exclusive CPUs: there is nothing to align to. */
    const kind = status.cpuManager.policy === 'static' ? kindOf(status, host, reserved) : undefined;
    const maskHost: MaskHost = { online, usable: online.minus(reserved), pinsVMs: status.pinsVMs };
    // The free devices are those of any of the nodes that share the report.
    return { kind, host: { online, threadsPerCore }, devices: status.devices, maskHost };
  } catch (error) {
    return faultOfError(error);
  }
}

function kindOf(
  { cpuManager, topologyManager, physnets = [], tunnel }: KindStatus,
  host: Host,
  reserved: CpuSet,
): NodeKind {
  for (const { name } of physnets) physnetResource(name);
  const fullPcpusOnly = cpuManager.options?.['full-pcpus-only'] === 'true';
  return Object.freeze({
    threadsPerCore: host.threadsPerCore,
    fullPcpusOnly,
    rooms: roomsOf(host, reserved, fullPcpusOnly),
    alignment: topologyManager?.policy ?? '',
    networks: {
      physnets: new Map(physnets.map((physnet) => [physnet.name, CpuSet.parse(physnet.cells, MAX_CELL_ID)])),
      tunnel: tunnel && CpuSet.parse(tunnel.cells, MAX_CELL_ID),
    },
  });
}

/** The kind without networks whose devices no kubelet advertises. @param advertised network resources */
export function narrowed(kind: NodeKind, advertised: ReadonlySet<string>): NodeKind {
  const { physnets, tunnel } = kind.networks;
  const there = [...physnets].filter(([name]) => advertised.has(physnetResource(name)));
  const hasTunnel = advertised.has(TUNNEL_RESOURCE);
  if (there.length === physnets.size && (tunnel === undefined || hasTunnel)) return kind;
  const networks = { physnets: new Map(there), tunnel: hasTunnel ? tunnel : undefined };
  return Object.freeze({ ...kind, networks });
}
