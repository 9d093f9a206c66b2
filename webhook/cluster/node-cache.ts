import { isDeepStrictEqual } from 'node:util';
import * as z from 'zod';
import { list, qualifiedName, word } from '../../kube/bounds.ts';
import { createReportReflector } from '../../kube/cluster-view/node-topologies.ts';
import { factsOfNode, labelsOf, NODES_PATH } from '../../kube/cluster-view/nodes.ts';
import { createReflector, type WatchOptions } from '../../kube/reflector.ts';
import { node as nodeSchema } from '../../kube/resources.ts';
import { isNetworkResource } from '../../model/kubelet/report.ts';
import { filteringTaints, type SelectingSpec, selectsNode, toleratesAll } from '../../model/launcher/node-selection.ts';
import type { NodeKind } from '../../model/launcher/smt-affinity.ts';
import { SCHEDULABLE_LABEL } from '../../model/names.ts';
import type { ReportedNetworks } from '../../model/networks/resources.ts';
import type { MaskHost } from '../../model/placement/mask-fit.ts';
import { checkReport, type ReportFault } from '../../model/report/check.ts';
import { createKindReader, narrowed, type ReadReport } from './kind-reader.ts';

export interface NodeCacheOptions extends WatchOptions {
  /** Called with the quarantined reports, by node, whenever they are computed. */
  readonly onQuarantined: (faults: ReadonlyMap<string, ReportFault>) => void;
}

export const observedNode = z.object({
  metadata: nodeSchema.shape.metadata.pick({ name: true, labels: true }),
  spec: z
    .object({
      unschedulable: z.boolean().optional(),
      taints: list(z.object({ key: qualifiedName, value: word.nullish(), effect: word }), 512).nullish(),
    })
    .nullish(),
  status: nodeSchema.shape.status,
});

/** The part of a Node that is kept: it determines which pods can run there, and its report is compared with it. */
type NodeView = ReturnType<typeof nodeView>;

function nodeView({ metadata, spec, status }: z.infer<typeof observedNode>) {
  return {
    labels: labelsOf({ metadata }),
    facts: factsOfNode({ metadata, status }),
    /** Plumbline's network resources that its kubelet advertises, ascending; undefined: unknown. */
    networks: status?.capacity && Object.keys(status.capacity).filter(isNetworkResource).sort().join(' '),
    taints: filteringTaints(spec ?? {}),
  };
}

/** Larger pages of a large cluster would create more garbage than the data that is kept. */
export const LIST_PAGE_OBJECTS = 100;

/**
 * Keeps one view and one kind for each node. Nodes of the same model share their kind. What depends on all nodes is
 * computed once between two changes; heartbeats change neither views nor kinds.
 *
 * A report affects other nodes as well. One that contradicts its Node or is an outlier therefore does not count, and a
 * network only counts if the Node's own kubelet advertises its device.
 */
export function createNodeCache({ onQuarantined, ...options }: NodeCacheOptions) {
  const readReport = createKindReader();
  let counted: CountedReports | undefined;
  const forget = () => {
    counted = undefined;
  };

  const shared = { ...options, page: LIST_PAGE_OBJECTS };
  const nodes = createReflector({
    ...shared,
    path: NODES_PATH,
    schema: observedNode,
    project: nodeView,
    onChange: ({ before, after }) => {
      if (!isDeepStrictEqual(before, after)) forget();
    },
  });
  const read = new Map<string, ReadReport>();
  const reports = createReportReflector(shared, (node, raw) => {
    const report = raw === undefined ? undefined : readReport(raw);
    if (read.get(node) === report) return;
    if (report === undefined) read.delete(node);
    else read.set(node, report);
    forget();
  });

  const current = (): CountedReports => {
    if (counted !== undefined) return counted;
    counted = countReports(read, nodes.items);
    onQuarantined(counted.faults);
    return counted;
  };
  const selects = (spec: SelectingSpec, name: string): boolean => {
    const view = nodes.items.get(name);
    return view !== undefined && selectsNode(spec, { name, label: (key) => view.labels.get(key) });
  };

  return {
    watches: { nodes, 'node reports': reports },
    candidates: (spec: SelectingSpec): readonly NodeKind[] => [...candidateKinds(current().kinds, nodes.items, spec)],
    /** Whether all KubeVirt nodes that a spec can run on have a report. A quarantined report does not count. */
    allReport(spec: SelectingSpec) {
      const { maskHosts: reporting } = current();
      return [...nodes.items].every(
        ([name, { labels }]) => reporting.has(name) || labels.get(SCHEDULABLE_LABEL) !== 'true' || !selects(spec, name),
      );
    },
    kinds: (): readonly NodeKind[] => current().distinct,
    reportedNetworks: (): ReportedNetworks => current().networks,
    /** The CPUs that a mask can select, for the reporting nodes that a spec can run on; one entry for equal nodes. */
    maskHosts(spec: SelectingSpec): readonly MaskHost[] {
      const hosts = new Set<MaskHost>();
      for (const [name, host] of current().maskHosts) if (!hosts.has(host) && selects(spec, name)) hosts.add(host);
      return [...hosts];
    },
  };
}

/**
 * The kinds of nodes that kube-scheduler would accept for a spec, by selector, affinity, cordon and taints. If taints
 * and cordons exclude all nodes they are ignored: the pod then waits for one of these nodes and must suit it.
 */
function candidateKinds(
  kinds: ReadonlyMap<string, NodeKind>,
  nodes: ReadonlyMap<string, NodeView>,
  spec: SelectingSpec,
): ReadonlySet<NodeKind> {
  const [open, selected] = [new Set<NodeKind>(), new Set<NodeKind>()];
  for (const [name, kind] of kinds) {
    const view = nodes.get(name);
    if (view === undefined || open.has(kind)) continue;
    if (!selectsNode(spec, { name, label: (key) => view.labels.get(key) })) continue;
    selected.add(kind);
    if (toleratesAll(spec.tolerations, view.taints)) open.add(kind);
  }
  return open.size > 0 ? open : selected;
}

type CountedReports = ReturnType<typeof countReports>;

function countReports(reports: ReadonlyMap<string, ReadReport>, nodes: ReadonlyMap<string, NodeView>) {
  const shared = new Map<NodeKind, Map<string, NodeKind>>();
  /** Equal nodes keep sharing their kind. @param advertised undefined: unknown, so all networks remain */
  const narrow = (kind: NodeKind, advertised: string | undefined): NodeKind => {
    if (advertised === undefined) return kind;
    const variants = shared.get(kind) ?? new Map<string, NodeKind>();
    const variant = variants.get(advertised) ?? narrowed(kind, new Set(advertised.split(' ')));
    shared.set(kind, variants.set(advertised, variant));
    return variant;
  };
  const kinds = new Map<string, NodeKind>();
  const maskHosts = new Map<string, MaskHost>();
  const faults = new Map<string, ReportFault>();
  for (const [name, report] of reports) {
    const { facts, networks } = nodes.get(name) ?? {};
    const fault = 'code' in report ? report : checkReport(report.host, facts, report.devices);
    if (fault !== undefined) faults.set(name, fault);
    if ('code' in report || fault !== undefined) continue;
    maskHosts.set(name, report.maskHost);
    if (report.kind !== undefined) kinds.set(name, narrow(report.kind, networks));
  }
  const distinct = [...new Set(kinds.values())];
  return { kinds, distinct, networks: networksOf(distinct, nodes), maskHosts, faults };
}

function networksOf(kinds: readonly NodeKind[], nodes: ReadonlyMap<string, NodeView>): ReportedNetworks {
  return {
    physnets: new Set(kinds.flatMap(({ networks }) => [...networks.physnets.keys()])),
    tunnel: kinds.some(({ networks }) => networks.tunnel !== undefined),
    // That any kubelet has, with and without a report of its node.
    devices: new Set([...nodes.values()].flatMap(({ networks }) => networks?.split(' ') ?? [])),
  };
}
