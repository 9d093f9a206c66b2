import { isDeepStrictEqual } from 'node:util';
import * as z from 'zod';
import { factsOfNode } from '../../kube/node-facts.ts';
import { NODE_TOPOLOGY_API } from '../../kube/node-topology.ts';
import { createReflector } from '../../kube/reflector.ts';
import { node as nodeSchema, objectMeta } from '../../kube/resources.ts';
import { isNetworkResource } from '../../model/kubelet/report.ts';
import type { NodeKind } from '../../model/launcher/node-kind.ts';
import { type SelectingSpec, selectionKey, selectsNode } from '../../model/launcher/node-selection.ts';
import { filteringTaints, type Taint, toleratesAll } from '../../model/launcher/taints.ts';
import { SCHEDULABLE_LABEL } from '../../model/names.ts';
import type { ReportedNetworks } from '../../model/networks/resources.ts';
import type { MaskHost } from '../../model/placement/mask-fit.ts';
import {
  type ComparedReport,
  checkReport,
  type NodeFacts,
  outliers,
  type ReportFault,
} from '../../model/report/check.ts';
import { createFairIntake } from '../../runtime/fair-intake.ts';
import { createKindReader, type KindReader, type ReadReport } from './kind-reader.ts';
import { type CacheOptions, LIST_PAGE } from './options.ts';

/** The nodes, from their labels and their agents' reports. */
export interface NodeCache {
  run(signal: AbortSignal): Promise<void>;
  readonly synced: boolean;
  /** The distinct kinds of the reporting nodes that a spec can run on: see candidateKinds. */
  candidates(spec: SelectingSpec): readonly NodeKind[];
  /** Whether all KubeVirt nodes that a spec can run on have a report. A quarantined report does not count. */
  allReport(spec: SelectingSpec): boolean;
  /** The kinds of all reporting nodes. */
  kinds(): readonly NodeKind[];
  reportedNetworks(): ReportedNetworks;
  /** The CPUs that a mask can select, for the reporting nodes that a spec can run on; one entry for equal nodes. */
  maskHosts(spec: SelectingSpec): readonly MaskHost[];
}

export interface NodeCacheOptions extends CacheOptions {
  /** Called with the quarantined reports, by node, whenever they are computed. */
  readonly onQuarantined: (faults: ReadonlyMap<string, ReportFault>) => void;
}

/** Number of cached selections between two changes of the nodes, and characters of one: pods determine them. */
const REMEMBERED = 500;
const LONGEST_KEY = 4096;

/** A report as received. It is parsed later, because parsing is most of its cost. */
const rawReport = z.object({ metadata: objectMeta.pick({ name: true }), status: z.unknown() });
const observedNode = z.object({
  metadata: nodeSchema.shape.metadata.pick({ name: true, labels: true }),
  spec: z
    .object({
      unschedulable: z.boolean().optional(),
      taints: z.array(z.object({ key: z.string(), value: z.string().nullish(), effect: z.string() })).nullish(),
    })
    .nullish()
    .catch(undefined),
  status: nodeSchema.shape.status,
});

/** The part of a Node that is kept: it determines which pods can run there, and its report is compared with it. */
interface NodeView {
  readonly labels: ReadonlyMap<string, string>;
  readonly facts: NodeFacts;
  /** Plumbline's network resources that its kubelet advertises, ascending; undefined: unknown. */
  readonly networks: string | undefined;
  /** Taints that kube-scheduler filters by, as JSON; '' for none. */
  readonly taints: string;
}

/**
 * Keeps one view and one kind for each node. Nodes of the same model share their kind. Results that depend on all nodes
 * are computed once between two changes; heartbeats change neither views nor kinds.
 *
 * A report affects other nodes as well. One that contradicts its Node or is an outlier therefore does not count, and a
 * network only counts if the Node's own kubelet advertises its device.
 */
export function createNodeCache({ client, log, now, onQuarantined }: NodeCacheOptions): NodeCache {
  const reader = createKindReader();
  const chosen = new Map<string, readonly NodeKind[]>();
  const complete = new Map<string, boolean>();
  let counted: CountedReports | undefined;
  let all: readonly NodeKind[] | undefined;
  let networks: ReportedNetworks | undefined;
  const forget = () => {
    chosen.clear();
    complete.clear();
    counted = undefined;
    all = undefined;
    networks = undefined;
  };

  const nodes = createReflector({
    client,
    path: '/api/v1/nodes',
    schema: observedNode,
    page: LIST_PAGE,
    project: ({ metadata, spec, status }): NodeView => ({
      labels: new Map(Object.entries(metadata.labels ?? {})),
      facts: factsOfNode({ metadata, status }),
      networks: status?.capacity && networkResources(status.capacity),
      taints: taintsText(spec ?? {}),
    }),
    onChange: ({ before, after }) => {
      if (before === undefined || after === undefined || !sameView(before, after)) forget();
    },
    log,
    now,
  });
  /** The parsed report of each node. */
  const read = new Map<string, ReadReport>();
  const intake = createFairIntake<unknown>((node, raw) => {
    const report = raw === undefined ? undefined : reader.readRaw(raw);
    if (read.get(node) === report) return;
    if (report === undefined) read.delete(node);
    else read.set(node, report);
    forget();
  });
  const reports = createReflector({
    client,
    path: `/apis/${NODE_TOPOLOGY_API.apiVersion}/${NODE_TOPOLOGY_API.plural}`,
    schema: rawReport,
    page: LIST_PAGE,
    project: ({ metadata, status }) => {
      intake.offer(metadata.name ?? '', status);
      return true;
    },
    onChange: ({ key, after }) => {
      if (after === undefined) intake.offer(key, undefined);
    },
    log,
    now,
  });

  const current = (): CountedReports => {
    if (counted !== undefined) return counted;
    counted = countReports(read, nodes.items, reader.narrowed);
    onQuarantined(counted.faults);
    return counted;
  };
  const selects = (spec: SelectingSpec, name: string): boolean => {
    const view = nodes.items.get(name);
    return view !== undefined && selectsNode(spec, { name, label: (wanted) => view.labels.get(wanted) });
  };

  return {
    async run(signal) {
      await Promise.all([nodes.run(signal), reports.run(signal)]);
    },
    get synced() {
      return nodes.synced && reports.synced;
    },
    candidates(spec) {
      return remembered(chosen, spec, () => [...candidateKinds(current().kinds, nodes.items, spec)]);
    },
    allReport(spec) {
      const { maskHosts: heard } = current();
      return remembered(complete, spec, () =>
        [...nodes.items].every(
          ([name, { labels }]) => heard.has(name) || labels.get(SCHEDULABLE_LABEL) !== 'true' || !selects(spec, name),
        ),
      );
    },
    kinds: () => (all ??= [...new Set(current().kinds.values())]),
    reportedNetworks: () => (networks ??= networksOf(current().kinds.values())),
    maskHosts(spec) {
      const hosts = new Set<MaskHost>();
      for (const [name, host] of current().maskHosts) if (!hosts.has(host) && selects(spec, name)) hosts.add(host);
      return [...hosts];
    },
  };
}

/** Cached keys of specs under review, because several queries use the same one. */
const keys = new WeakMap<SelectingSpec, string>();

/** The result for a selection, computed once between two changes of the nodes. */
function remembered<T>(known: Map<string, T>, spec: SelectingSpec, workOut: () => T): T {
  const key = keys.get(spec) ?? selectionKey(spec);
  keys.set(spec, key);
  const found = known.get(key) ?? workOut();
  if (known.size >= REMEMBERED) known.clear();
  if (key.length <= LONGEST_KEY) known.set(key, found);
  return found;
}

function sameView(a: NodeView, b: NodeView): boolean {
  const sameFacts = a.facts.cpus === b.facts.cpus && a.facts.arch === b.facts.arch && a.networks === b.networks;
  return sameFacts && a.taints === b.taints && isDeepStrictEqual(a.labels, b.labels);
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
  const tolerated = new Map([['', true]]);
  const isTolerated = (taints: string): boolean => {
    const known = tolerated.get(taints) ?? toleratesAll(spec.tolerations, JSON.parse(taints) as Taint[]);
    tolerated.set(taints, known);
    return known;
  };
  for (const [name, kind] of kinds) {
    const view = nodes.get(name);
    if (view === undefined || open.has(kind)) continue;
    if (!selectsNode(spec, { name, label: (wanted) => view.labels.get(wanted) })) continue;
    selected.add(kind);
    if (isTolerated(view.taints)) open.add(kind);
  }
  return open.size > 0 ? open : selected;
}

function taintsText(spec: Parameters<typeof filteringTaints>[0]): string {
  const taints = filteringTaints(spec);
  return taints.length === 0 ? '' : JSON.stringify(taints);
}

/** The resources as one text. */
function networkResources(capacity: Readonly<Record<string, string>>): string {
  return Object.keys(capacity).filter(isNetworkResource).sort().join(' ');
}

/** Results from each report that counts, and the faults of the others. */
interface CountedReports {
  readonly kinds: ReadonlyMap<string, NodeKind>;
  readonly maskHosts: ReadonlyMap<string, MaskHost>;
  readonly faults: ReadonlyMap<string, ReportFault>;
}

function countReports(
  reports: ReadonlyMap<string, ReadReport>,
  nodes: ReadonlyMap<string, NodeView>,
  narrowed: KindReader['narrowed'],
): CountedReports {
  const kinds = new Map<string, NodeKind>();
  const maskHosts = new Map<string, MaskHost>();
  const faults = new Map<string, ReportFault>();
  const compared = new Map<string, ComparedReport>();
  for (const [name, report] of reports) {
    const { facts, networks } = nodes.get(name) ?? {};
    const fault = 'code' in report ? report : checkReport(report.host, facts);
    if ('code' in report || fault !== undefined) {
      if (fault !== undefined) faults.set(name, fault);
      continue;
    }
    maskHosts.set(name, report.maskHost);
    if (report.kind === undefined) continue;
    kinds.set(name, narrowed(report.kind, networks));
    compared.set(name, { threadsPerCore: report.kind.threadsPerCore, arch: facts?.arch });
  }
  for (const [name, fault] of outliers(compared)) {
    faults.set(name, fault);
    kinds.delete(name);
    maskHosts.delete(name);
  }
  return { kinds, maskHosts, faults };
}

function networksOf(kinds: Iterable<NodeKind | undefined>): ReportedNetworks {
  const physnets = new Set<string>();
  let tunnel = false;
  for (const kind of new Set(kinds)) {
    for (const name of kind?.networks.physnets.keys() ?? []) physnets.add(name);
    tunnel ||= kind?.networks.tunnel !== undefined;
  }
  return { physnets, tunnel };
}
