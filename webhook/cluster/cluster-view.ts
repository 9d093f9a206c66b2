import * as z from 'zod';
import { cacheProblem, createReflector, type Watches } from '../../kube/reflector.ts';
import { objectMeta } from '../../kube/resources.ts';
import type { ConfiguredContext } from '../../model/networks/context.ts';
import { PRIMARY_NETWORK_LABEL, type PrimaryNetwork } from '../../model/networks/interfaces.ts';
import { createNadCache, createNetworkContextCache } from './network-caches.ts';
import { createNodeCache, type NodeCacheOptions } from './node-cache.ts';
import { createVmiCache } from './vmi-cache.ts';

/** The watched copy of the cluster that the webhook decides by. */
export type ClusterView = ReturnType<typeof createClusterView>;

export const namespaceSchema = z.object({ metadata: objectMeta.pick({ name: true, namespace: true }) });

export function createClusterView(configured: ConfiguredContext, options: NodeCacheOptions) {
  const nads = createNadCache(options);
  const nodes = createNodeCache(options);
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
    async run(signal: AbortSignal) {
      await Promise.all(Object.values(watches).map((watch) => watch.run(signal)));
    },
    /** Why it must not be relied on: see cacheProblem. A kind that is not installed counts as empty. */
    get problem() {
      return cacheProblem(watches, options.nowSeconds());
    },
    findVmi: vmis.find,
    findNad: nads.find,
    /** The primary user-defined network of a namespace, which replaces the pod network there. */
    primaryNetwork(namespace: string): PrimaryNetwork {
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
