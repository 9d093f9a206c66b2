import { CpuSet } from '../../model/cpu-set.ts';
import { physnetOfResource, TUNNEL_RESOURCE } from '../../model/names.ts';
import { EMPTY_CONTEXT } from '../../model/networks/context.ts';
import { nadFacts } from '../../model/networks/nad.ts';
import { NetworkMapError, networkMapFor, parseNetworkMap } from '../../model/networks/network-map.ts';
import { resolveNetworks } from '../../model/networks/resolve.ts';
import { requiredResources } from '../../model/networks/resources.ts';
import { type Adapter, collect, combined, differs, Skip, type Verdict } from './outcome.ts';

/** An operator's map for a host with these NUMA nodes, and what Nova makes of it. */
interface HostCase {
  readonly name: string;
  readonly hostNodes: readonly number[];
  readonly config: {
    readonly physnets: readonly string[];
    readonly groups: Readonly<Record<string, readonly number[]>>;
    readonly tunnel: readonly number[];
  };
  readonly expected: {
    readonly cells?: readonly {
      readonly id: number;
      readonly physnets: readonly string[];
      readonly tunneled: boolean;
    }[];
    readonly error?: string;
  };
}

interface NeutronNetwork {
  readonly physical?: string | null;
  readonly type?: string;
  readonly segments?: readonly unknown[];
}

interface GuestCase {
  readonly name: string;
  readonly networks: readonly NeutronNetwork[];
  readonly expected: { readonly physnets?: readonly string[]; readonly tunneled?: boolean } | null;
}

/** nova-vswitch-config-cases.json: the operator's map of a host's networks, and what a guest asks for. */
export const run: Adapter = (content) => {
  const { hostConfig, guestNetworks } = content as { hostConfig: HostCase[]; guestNetworks: GuestCase[] };
  return combined([
    collect(hostConfig, ({ name }) => `hostConfig ${name}`, host),
    collect(guestNetworks, ({ name }) => `guestNetworks ${name}`, guest),
  ]);
};

function host({ hostNodes, config, expected }: HostCase): Verdict {
  if (config.physnets.some((name) => !Object.hasOwn(config.groups, name))) {
    return new Skip('intended difference: a physnet without NUMA nodes has no affinity, where Nova refuses to start');
  }
  const groups = Object.entries(config.groups).map(([name, numaNodes]) => [name, { numaNodes }]);
  try {
    const map = parseNetworkMap([{ physnets: Object.fromEntries(groups), tunnel: { numaNodes: config.tunnel } }]);
    const found = networkMapFor(map, {}, CpuSet.of([...hostNodes]));
    const cells = hostNodes.map((id) => ({
      id,
      physnets: [...(found?.physnets ?? [])]
        .filter(([, nodes]) => nodes.has(id))
        .map(([name]) => name)
        .sort(),
      tunneled: found?.tunnel?.has(id) ?? false,
    }));
    return differs(cells, expected.cells);
  } catch (error) {
    if (!(error instanceof NetworkMapError)) throw error;
    return expected.error === undefined ? error.message : undefined;
  }
}

/** Neutron's networks as NetworkAttachmentDefinitions of the same kind. */
function guest({ networks, expected }: GuestCase): Verdict {
  if (networks.some(({ segments }) => segments)) {
    return new Skip('a NetworkAttachmentDefinition is one network and has no segments');
  }
  const configs = networks.map(nadConfig);
  const { networks: resolved } = resolveNetworks({
    interfaces: configs.map((_, index) => ({
      name: `net${index}`,
      role: 'secondary',
      ref: { namespace: 'default', name: `nad${index}` },
    })),
    preferences: new Map(),
    findNad: ({ name }) =>
      nadFacts({ metadata: { name }, spec: { config: configs[Number(name.slice('nad'.length))] } }),
    context: EMPTY_CONTEXT,
    exclusive: true,
  });
  const reported = { physnets: new Set(networks.flatMap(({ physical }) => physical ?? [])), tunnel: true };
  const { resources } = requiredResources(resolved, reported, true);
  const physnets = resources.flatMap((name) => physnetOfResource(name) ?? []).sort();
  const asked = { physnets, tunneled: resources.includes(TUNNEL_RESOURCE) };
  return differs(asked, expected ?? { physnets: [], tunneled: false });
}

function nadConfig({ physical, type }: NeutronNetwork): string {
  if (physical)
    return JSON.stringify({ type: 'ovn-k8s-cni-overlay', topology: 'localnet', physicalNetworkName: physical });
  const tunneled = type === 'vxlan' || type === 'gre' || type === 'geneve';
  return JSON.stringify(
    tunneled ? { type: 'ovn-k8s-cni-overlay', topology: 'layer2' } : { type: 'bridge', bridge: 'br0' },
  );
}
