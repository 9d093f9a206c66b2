import * as z from 'zod';
import { name, qualifiedName } from '../../kube/bounds.ts';
import { definitionFacts, definitionsPath } from '../../kube/cluster-view/definitions.ts';
import { createReflector, type WatchOptions } from '../../kube/reflector.ts';
import { networkAttachmentDefinition, objectMeta } from '../../kube/resources.ts';
import { type NetworkRef, refText } from '../../model/networks/attachments.ts';
import type { ConfiguredContext, KubeOvnSubnet, KubeOvnVlan, NetworkContext } from '../../model/networks/context.ts';
import { isPrimaryNetwork, type NadFacts } from '../../model/networks/nad.ts';
import { TenantBudget } from '../../runtime/tenant-budget.ts';
import { LIST_PAGE_OBJECTS } from './node-cache.ts';

const MAX_DEFINITION_BYTES = 16 * 1024 * 1024;

export function createNadCache({ client, log, nowSeconds }: WatchOptions) {
  const primaries = new Map<string, Set<string>>();
  const definitions = createReflector({
    client,
    path: definitionsPath(),
    schema: networkAttachmentDefinition,
    page: LIST_PAGE_OBJECTS,
    project: definitionFacts,
    budget: new TenantBudget(MAX_DEFINITION_BYTES),
    onChange: ({ key, after }) => {
      const [namespace = '', name = ''] = key.split('/');
      if (after !== undefined && isPrimaryNetwork(after)) {
        primaries.set(namespace, (primaries.get(namespace) ?? new Set()).add(name));
      } else if (primaries.get(namespace)?.delete(name) && primaries.get(namespace)?.size === 0) {
        primaries.delete(namespace);
      }
    },
    optional: true,
    log,
    nowSeconds,
  });
  return {
    watches: { 'network definitions': definitions },
    find: (ref: NetworkRef): NadFacts | undefined => definitions.items.get(refText(ref)),
    /** The definition with the role primary in a namespace. */
    primaryIn(namespace: string): NetworkRef | undefined {
      const [name] = primaries.get(namespace) ?? [];
      return name === undefined ? undefined : { namespace, name };
    },
  };
}

export const subnet = z.object({
  metadata: objectMeta.pick({ name: true, namespace: true }),
  spec: z.object({ provider: qualifiedName.default(''), vlan: name.optional() }),
});

export const vlan = z.object({
  metadata: objectMeta.pick({ name: true, namespace: true }),
  spec: z.object({ provider: qualifiedName.default('') }),
});

/** Kube-OVN's subnet of the cluster's pod network, which is not needed here. */
const CLUSTER_NETWORK_PROVIDER = 'ovn';

/** The paths of networks whose plugin names no physnet, from the configuration and Kube-OVN's objects. */
export function createNetworkContextCache(configured: ConfiguredContext, { client, log, nowSeconds }: WatchOptions) {
  let built: NetworkContext | undefined;
  const onChange = () => {
    built = undefined;
  };
  const shared = { client, optional: true, onChange, log, nowSeconds } as const;
  const subnets = createReflector({
    ...shared,
    path: '/apis/kubeovn.io/v1/subnets',
    schema: subnet,
    project: ({ metadata, spec }): KubeOvnSubnet => ({ name: metadata.name ?? '', ...spec }),
  });
  const vlans = createReflector({
    ...shared,
    path: '/apis/kubeovn.io/v1/vlans',
    schema: vlan,
    project: ({ metadata, spec }): KubeOvnVlan => ({ name: metadata.name ?? '', ...spec }),
  });
  return {
    watches: { 'Kube-OVN subnets': subnets, 'Kube-OVN VLANs': vlans },
    current: (): NetworkContext =>
      (built ??= {
        ...configured,
        kubeOvnSubnets: [...subnets.items.values()].filter(({ provider }) => provider !== CLUSTER_NETWORK_PROVIDER),
        kubeOvnVlans: [...vlans.items.values()],
      }),
  };
}
