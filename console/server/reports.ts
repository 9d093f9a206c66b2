import { NodeShapes, type SharedShape } from '../../kube/cluster-view/node-topologies.ts';
import { cpuOwners, type NodeTopologyStatus, nodeTopologyStatus } from '../../kube/node-topology.ts';
import { assignedCpus } from '../../model/kubelet/report.ts';
import { usageOf } from '../../model/kubelet/usage.ts';
import { type PlacementHost, preparedHost } from '../../model/placement/needs.ts';
import { freeResources } from '../../model/report/check.ts';
import type { ShapeContent } from '../data/wire.ts';

interface Shape {
  readonly content: ShapeContent;
  readonly empty: PlacementHost;
}

export interface Report extends ReturnType<typeof contentOf> {
  /** Undefined for a report that contradicts itself. */
  readonly shape: SharedShape<Shape> | undefined;
}

const NOTHING = { assignments: [], usage: '', resources: [], refusals: [], pinning: [], conditions: [] };
const CONTRADICTS_ITSELF: Report = { shape: undefined, ...NOTHING };

function contentOf(status: NodeTopologyStatus) {
  const owners = cpuOwners(status);
  assignedCpus(owners);
  return {
    /** The devices and memory in use; see `usageOf`. */
    usage: usageOf(status),
    resources: freeResources(status),
    assignments: owners.map(({ podUID, namespace, podName, container, cpus }) => {
      const pod = namespace === undefined || podName === undefined ? undefined : `${namespace}/${podName}`;
      return { podUID, pod, container, cpus };
    }),
    refusals: status.refusals ?? [],
    pinning: status.pinning ?? [],
    /** Those that are False. */
    conditions: (status.conditions ?? []).filter((condition) => condition.status === 'False'),
  };
}

/** @param changed called with the node after its report has changed */
export function createReports(changed: (node: string) => void) {
  const byNode = new Map<string, Report>();
  const shapes = new NodeShapes<Shape>((withoutPods) => ({
    content: shapeContent(withoutPods),
    empty: preparedHost(withoutPods),
  }));

  const read = (raw: unknown): Report => {
    try {
      const status = nodeTopologyStatus.parse(raw);
      // The shape last, since it must be released.
      return { ...contentOf(status), shape: shapes.take(status) };
    } catch {
      // The page shows the node in quarantine; an Event of the extender has the reason.
      return CONTRADICTS_ITSELF;
    }
  };

  return {
    byNode: byNode as ReadonlyMap<string, Report>,
    /** @param status from the node's NodeTopology, as received; undefined: there is none */
    take(node: string, status: unknown) {
      const before = byNode.get(node)?.shape;
      if (status == null) byNode.delete(node);
      else byNode.set(node, read(status));
      if (before !== undefined) shapes.release(before);
      changed(node);
    },
  };
}

function shapeContent(report: NodeTopologyStatus): ShapeContent {
  const { cpuManager, topologyManager } = report;
  return {
    cells: report.cells.map(({ id, cpus }) => [id, cpus]),
    cores: report.cores,
    reserved: report.reserved,
    polled: report.pmdCPUs,
    isolated: report.isolated,
    physnets: (report.physnets ?? []).map(({ name, cells }) => [name, cells]),
    tunnel: report.tunnel?.cells,
    policy: cpuManager.policy,
    wholeCores: cpuManager.options?.['full-pcpus-only'] === 'true',
    alignment: topologyManager?.policy,
    scope: topologyManager?.scope,
    kubelet: report.kubeletVersion,
  };
}
