import * as z from 'zod';
import { cacheProblem, createReflector, type Watches } from '../../kube/reflector.ts';
import { objectMeta } from '../../kube/resources.ts';
import type { NodeKind } from '../../model/launcher/node-kind.ts';
import type { SelectingSpec } from '../../model/launcher/node-selection.ts';
import type { NetworkRef } from '../../model/networks/attachments.ts';
import type { NetworkContext } from '../../model/networks/context.ts';
import type { ConfiguredContext } from '../../model/networks/context-file.ts';
import { PRIMARY_NETWORK_LABEL, type PrimaryNetwork } from '../../model/networks/interfaces.ts';
import type { NadFacts } from '../../model/networks/nad.ts';
import type { ReportedNetworks } from '../../model/networks/resources.ts';
import type { MaskHost } from '../../model/placement/mask-fit.ts';
import type { ReportFault } from '../../model/report/check.ts';
import { createNadCache } from './nad-cache.ts';
import { createNetworkContextCache } from './network-context-cache.ts';
import { createNodeCache } from './node-cache.ts';
import type { CacheOptions } from './options.ts';
import { createVmiCache, type VmiView } from './vmi-cache.ts';

/** The watched copy of the cluster that the webhook decides by. */
export interface ClusterView {
  run(signal: AbortSignal): Promise<void>;
  /** Why it must not be relied on: see cacheProblem. A kind that is not installed counts as empty. */
  readonly problem: string | undefined;
  findVmi(namespace: string, name: string): VmiView | undefined;
  findNad(ref: NetworkRef): NadFacts | undefined;
  /** The primary user-defined network of a namespace, which replaces the pod network there. */
  primaryNetwork(namespace: string): PrimaryNetwork;
  networkContext(): NetworkContext;
  /** The distinct kinds of the reporting nodes that a spec can run on. */
  candidates(spec: SelectingSpec): readonly NodeKind[];
  /** Whether all KubeVirt nodes that a spec can run on have a report; other nodes do not count. */
  allReport(spec: SelectingSpec): boolean;
  /** The kinds of all reporting nodes. */
  nodeKinds(): readonly NodeKind[];
  /** The physnets and tunnels that nodes report. */
  reportedNetworks(): ReportedNetworks;
  /** The CPUs that a mask can select, for the reporting nodes that a spec can run on. */
  maskHosts(spec: SelectingSpec): readonly MaskHost[];
}

export const namespaceSchema = z.object({ metadata: objectMeta.pick({ name: true, namespace: true }) });

export interface ClusterViewOptions extends CacheOptions {
  /** Called with the quarantined reports, by node, whenever they are computed. */
  readonly onQuarantined?: (faults: ReadonlyMap<string, ReportFault>) => void;
}

export function createClusterView(configured: ConfiguredContext, options: ClusterViewOptions): ClusterView {
  const nads = createNadCache(options);
  const nodes = createNodeCache({ ...options, onQuarantined: options.onQuarantined ?? (() => undefined) });
  const vmis = createVmiCache(options);
  const context = createNetworkContextCache(configured, options);
  // OVN-Kubernetes requires the label when the namespace is created, so only labelled namespaces are watched.
  const labelled = createReflector({
    ...options,
    path: '/api/v1/namespaces',
    query: { labelSelector: PRIMARY_NETWORK_LABEL },
    schema: namespaceSchema,
    project: () => true,
  });
  const caches = [nads, nodes, vmis, context].map((cache) => cache.watches);
  const watches = Object.assign({ namespaces: labelled }, ...caches) as Watches;
  return {
    async run(signal) {
      await Promise.all(Object.values(watches).map((watch) => watch.run(signal)));
    },
    get problem() {
      return cacheProblem(watches, options.now());
    },
    findVmi: vmis.find,
    findNad: nads.find,
    primaryNetwork(namespace) {
      if (!labelled.items.has(namespace)) return { kind: 'none' };
      const ref = nads.primaryIn(namespace);
      return ref === undefined ? { kind: 'missing' } : { kind: 'primary', ref };
    },
    networkContext: context.current,
    candidates: nodes.candidates,
    allReport: nodes.allReport,
    nodeKinds: nodes.kinds,
    reportedNetworks: nodes.reportedNetworks,
    maskHosts: nodes.maskHosts,
  };
}
