import * as z from 'zod';
import { name, qualifiedName } from '../../kube/bounds.ts';
import { createReflector } from '../../kube/reflector.ts';
import { objectMeta } from '../../kube/resources.ts';
import type { KubeOvnSubnet, KubeOvnVlan, NetworkContext } from '../../model/networks/context.ts';
import type { ConfiguredContext } from '../../model/networks/context-file.ts';
import type { CacheOptions } from './options.ts';

export const subnet = z.object({
  metadata: objectMeta.pick({ name: true, namespace: true }),
  spec: z.object({ provider: qualifiedName.default(''), vlan: name.optional() }),
});
export const vlan = z.object({
  metadata: objectMeta.pick({ name: true, namespace: true }),
  spec: z.object({ provider: qualifiedName.default('') }),
});

/** Kube-OVN's subnet of the cluster's pod network, which is not needed here. */
const OWN_PROVIDER = 'ovn';

/** The paths of networks whose plugin names no physnet, from the configuration and Kube-OVN's objects. */
export function createNetworkContextCache(configured: ConfiguredContext, { client, log, now }: CacheOptions) {
  let built: NetworkContext | undefined;
  const onChange = () => {
    built = undefined;
  };
  const shared = { client, optional: true, onChange, log, now } as const;
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
        kubeOvnSubnets: [...subnets.items.values()].filter(({ provider }) => provider !== OWN_PROVIDER),
        kubeOvnVlans: [...vlans.items.values()],
      }),
  };
}
