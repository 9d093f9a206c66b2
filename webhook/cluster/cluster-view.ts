import * as z from 'zod';
import { name, qualifiedName } from '../../kube/bounds.ts';
import { definitionFacts, definitionsPath } from '../../kube/cluster-view/definitions.ts';
import { instancesPath } from '../../kube/cluster-view/vmis.ts';
import { cacheProblem, createReflector, type Watches } from '../../kube/reflector.ts';
import { networkAttachmentDefinition, objectMeta } from '../../kube/resources.ts';
import { type VirtualMachineInstance, virtualMachineInstance } from '../../kube/virtual-machines.ts';
import { READ_ANNOTATIONS } from '../../model/launcher/recognize.ts';
import { type NetworkRef, refText } from '../../model/networks/attachments.ts';
import type { ConfiguredContext, KubeOvnSubnet, KubeOvnVlan, NetworkContext } from '../../model/networks/context.ts';
import { PRIMARY_NETWORK_LABEL, type PrimaryNetwork } from '../../model/networks/interfaces.ts';
import { isPrimaryNetwork, type NadFacts } from '../../model/networks/nad.ts';
import type { VmiShape } from '../../model/shapes.ts';
import { TenantBudget } from '../../runtime/tenant-budget.ts';
import { createNodeCache, LIST_PAGE_OBJECTS, type NodeCacheOptions } from './node-cache.ts';

export const namespaceSchema = z.object({ metadata: objectMeta.pick({ name: true, namespace: true }) });
export const subnet = namespaceSchema.extend({
  spec: z.object({ provider: qualifiedName.default(''), vlan: name.optional() }),
});
export const vlan = namespaceSchema.extend({ spec: z.object({ provider: qualifiedName.default('') }) });

/** Ten thousand VMIs of one namespace need a third of it. A VMI that does not fit is read when its launcher is created. */
const MAX_VMI_BYTES = 48 * 1024 * 1024;
const MAX_DEFINITION_BYTES = 16 * 1024 * 1024;

/** Kube-OVN's subnet of the cluster's pod network, which is not needed here. */
const CLUSTER_NETWORK_PROVIDER = 'ovn';

/** The watched copy of the cluster that the webhook decides by. */
export type ClusterView = ReturnType<typeof createClusterView>;

export function createClusterView(configured: ConfiguredContext, options: NodeCacheOptions) {
  const nodes = createNodeCache(options);
  // OVN-Kubernetes requires the label when the namespace is created, so only labelled namespaces are watched.
  const namespaces = createReflector({
    ...options,
    path: '/api/v1/namespaces',
    query: { labelSelector: PRIMARY_NETWORK_LABEL },
    schema: namespaceSchema,
    project: () => true,
  });
  /** Of kinds that may not be installed. */
  const optional = { ...options, optional: true };
  const definitions = createReflector({
    ...optional,
    path: definitionsPath(),
    schema: networkAttachmentDefinition,
    page: LIST_PAGE_OBJECTS,
    project: definitionFacts,
    budget: new TenantBudget(MAX_DEFINITION_BYTES),
  });
  const instances = createReflector({
    ...optional,
    path: instancesPath(),
    schema: virtualMachineInstance,
    page: LIST_PAGE_OBJECTS,
    project: vmiView,
    budget: new TenantBudget(MAX_VMI_BYTES),
  });
  let context: NetworkContext | undefined;
  const forgetContext = () => {
    context = undefined;
  };
  const subnets = createReflector({
    ...optional,
    path: '/apis/kubeovn.io/v1/subnets',
    schema: subnet,
    project: ({ metadata, spec }): KubeOvnSubnet => ({ name: metadata.name ?? '', ...spec }),
    onChange: forgetContext,
  });
  const vlans = createReflector({
    ...optional,
    path: '/apis/kubeovn.io/v1/vlans',
    schema: vlan,
    project: ({ metadata, spec }): KubeOvnVlan => ({ name: metadata.name ?? '', ...spec }),
    onChange: forgetContext,
  });
  const watches: Watches = {
    namespaces,
    'network definitions': definitions,
    ...nodes.watches,
    VMIs: instances,
    'Kube-OVN subnets': subnets,
    'Kube-OVN VLANs': vlans,
  };
  return {
    run: (signal: AbortSignal) => Promise.all(Object.values(watches).map((watch) => watch.run(signal))),
    /** Why it must not be relied on: see cacheProblem. A kind that is not installed counts as empty. */
    get problem() {
      return cacheProblem(watches, options.nowSeconds());
    },
    findVmi: (namespace: string, vmi: string): VmiShape | undefined => instances.items.get(`${namespace}/${vmi}`),
    findNad: (ref: NetworkRef): NadFacts | undefined => definitions.items.get(refText(ref)),
    /** The primary user-defined network of a namespace, which replaces the pod network there. */
    primaryNetwork(namespace: string): PrimaryNetwork {
      if (!namespaces.items.has(namespace)) return { kind: 'none' };
      const prefix = `${namespace}/`;
      for (const [key, nad] of definitions.items) {
        if (key.startsWith(prefix) && isPrimaryNetwork(nad))
          return { kind: 'primary', ref: { namespace, name: key.slice(prefix.length) } };
      }
      return { kind: 'missing' };
    },
    /** The paths of networks whose plugin names no physnet, from the configuration and Kube-OVN's objects. */
    networkContext: (): NetworkContext =>
      (context ??= {
        ...configured,
        kubeOvnSubnets: [...subnets.items.values()].filter(({ provider }) => provider !== CLUSTER_NETWORK_PROVIDER),
        kubeOvnVlans: [...vlans.items.values()],
      }),
    candidates: nodes.candidates,
    allReport: nodes.allReport,
    nodeKinds: nodes.kinds,
    reportedNetworks: nodes.reportedNetworks,
    maskHosts: nodes.maskHosts,
  };
}

/** The fields of a VMI that affect the decision about its launcher. The launcher itself has the node selectors. */
function vmiView({
  metadata: { uid, annotations = {} },
  spec: { domain, networks },
}: VirtualMachineInstance): VmiShape {
  const { limits, requests } = domain.resources ?? {};
  const read = Object.entries(annotations).filter(([name]) => READ_ANNOTATIONS.includes(name));
  return {
    metadata: { uid, annotations: read.length === 0 ? undefined : Object.fromEntries(read) },
    spec: { domain: { ...domain, resources: { limits: cpuOf(limits), requests: cpuOf(requests) } }, networks },
  };
}

function cpuOf(amounts: Readonly<Record<string, string>> | undefined) {
  return amounts?.['cpu'] === undefined ? undefined : { cpu: amounts['cpu'] };
}
