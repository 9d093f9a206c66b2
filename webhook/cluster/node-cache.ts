import * as z from 'zod';
import { createInterning } from '../../kube/interning.ts';
import { NODE_TOPOLOGY_API, nodeTopologyStatus } from '../../kube/node-topology.ts';
import { labelIn, packLabels, sameLabels } from '../../kube/packed-labels.ts';
import { createReflector } from '../../kube/reflector.ts';
import { node as nodeSchema, objectMeta } from '../../kube/resources.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import type { NodeKind } from '../../model/launcher/node-kind.ts';
import { type SelectingSpec, selectionKey, selectsNode } from '../../model/launcher/node-selection.ts';
import type { ReportedNetworks } from '../../model/networks/resources.ts';
import { type CacheOptions, LIST_PAGE } from './options.ts';

/** What the nodes are, from their labels and their agents' reports. */
export interface NodeCache {
  run(signal: AbortSignal): Promise<void>;
  readonly synced: boolean;
  /** The kinds of the reporting nodes that a spec can go to, each once. */
  candidates(spec: SelectingSpec): readonly NodeKind[];
  /** The kinds of all reporting nodes. */
  kinds(): readonly NodeKind[];
  reportedNetworks(): ReportedNetworks;
}

/** Selections remembered between two changes of the nodes. */
const REMEMBERED = 500;

/** A report, reduced to what admission asks. Assignments, which are most of it, are not looked at. */
const topology = z.object({
  metadata: objectMeta.pick({ name: true, namespace: true }),
  status: nodeTopologyStatus
    .pick({ cells: true, cores: true, cpuManager: true, physnets: true, tunnel: true })
    .optional(),
});
const labelled = z.object({ metadata: nodeSchema.shape.metadata.pick({ name: true, namespace: true, labels: true }) });

/**
 * Keeps one label list and one kind for each node. Nodes of one make share their kind, and what follows from them all is
 * worked out once between two changes: heartbeats change neither labels nor kinds.
 */
export function createNodeCache({ client, log, now }: CacheOptions): NodeCache {
  const intern = createInterning();
  const shared = new Map<string, NodeKind>();
  const chosen = new Map<string, readonly NodeKind[]>();
  let all: readonly NodeKind[] | undefined;
  let networks: ReportedNetworks | undefined;
  const forget = () => {
    chosen.clear();
    all = undefined;
    networks = undefined;
  };

  const kindOf = (status: Status): NodeKind => {
    const key = JSON.stringify([
      status.cells.map(({ cpus }) => cpus),
      status.cores.length,
      status.cpuManager.options?.['full-pcpus-only'],
      status.physnets,
      status.tunnel,
    ]);
    const found = shared.get(key);
    if (found !== undefined) return found;
    // Reports of nodes that are long gone must not pile up.
    if (shared.size > 10_000) shared.clear();
    const kind = readKind(status);
    shared.set(key, kind);
    return kind;
  };

  const nodes = createReflector({
    client,
    path: '/api/v1/nodes',
    schema: labelled,
    page: LIST_PAGE,
    project: ({ metadata }) => packLabels(metadata.labels ?? {}, intern),
    onChange: ({ before, after }) => {
      if (before === undefined || after === undefined || !sameLabels(before, after)) forget();
    },
    log,
    now,
  });
  const reports = createReflector({
    client,
    path: `/apis/${NODE_TOPOLOGY_API.apiVersion}/${NODE_TOPOLOGY_API.plural}`,
    schema: topology,
    page: LIST_PAGE,
    // Without the static policy no CPU is exclusive there, so there is nothing to align to.
    project: ({ metadata, status }) => {
      if (status?.cpuManager.policy !== 'static') return undefined;
      try {
        return kindOf(status);
      } catch (err) {
        log.warn({ err, node: metadata.name }, 'passed over a report that contradicts itself');
        return undefined;
      }
    },
    onChange: ({ before, after }) => {
      if (before !== after) forget();
    },
    log,
    now,
  });

  return {
    async run(signal) {
      await Promise.all([nodes.run(signal), reports.run(signal)]);
    },
    get synced() {
      return nodes.synced && reports.synced;
    },
    candidates(spec) {
      const key = selectionKey(spec);
      const known = chosen.get(key);
      if (known !== undefined) return known;
      const kinds = new Set<NodeKind>();
      for (const [name, kind] of reports.items) {
        const labels = nodes.items.get(name);
        if (kind === undefined || labels === undefined || kinds.has(kind)) continue;
        if (selectsNode(spec, { name, label: (wanted) => labelIn(labels, wanted) })) kinds.add(kind);
      }
      if (chosen.size >= REMEMBERED) chosen.clear();
      chosen.set(key, [...kinds]);
      return [...kinds];
    },
    kinds: () => (all ??= [...new Set([...reports.items.values()].filter((kind) => kind !== undefined))]),
    reportedNetworks: () => (networks ??= networksOf(reports.items.values())),
  };
}

type Status = NonNullable<z.infer<typeof topology>['status']>;

function readKind(status: Status): NodeKind {
  const cpus = status.cells.reduce((sum, cell) => sum + CpuSet.parse(cell.cpus).size, 0);
  return Object.freeze({
    threadsPerCore: Math.max(1, Math.floor(cpus / Math.max(1, status.cores.length))),
    fullPcpusOnly: status.cpuManager.options?.['full-pcpus-only'] === 'true',
    networks: {
      physnets: new Map((status.physnets ?? []).map(({ name, cells }) => [name, CpuSet.parse(cells)])),
      tunnel: status.tunnel && CpuSet.parse(status.tunnel.cells),
    },
  });
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
