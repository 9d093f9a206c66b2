import { NAD_PHYSNET_ANNOTATION } from '../names.ts';
import type { MetaShape, Optional } from '../shapes.ts';
import { mainPlugin, type NadRefusal, type Plugin, refusalOf } from './cni-config.ts';
import type { NetworkContext } from './context.ts';

interface NadShape {
  readonly metadata: Pick<MetaShape, 'name' | 'namespace'> & {
    readonly annotations?: Optional<Readonly<Record<string, string>>>;
  };
  readonly spec?: Optional<{ readonly config?: Optional<string> }>;
}

/** The same as of a qualified name. */
const MAX_VALUE_CHARACTERS = 253 + 1 + 63;
export const RESOURCE_NAME_ANNOTATION = 'k8s.v1.cni.cncf.io/resourceName';

/** Small, so that ten thousand definitions fit in memory. */
export interface NadFacts {
  readonly physnet: string | undefined;
  readonly resourceName: string | undefined;
  readonly main: Plugin | 'invalid-json' | 'no-config';
  /** Why pods on it do not start. */
  readonly refusal?: NadRefusal;
}

export type NetworkClass =
  /** Through the uplinks of a physical network, without encapsulation. */
  | { readonly kind: 'physnet'; readonly physnet: string }
  | { readonly kind: 'tunnel' }
  /** Through its own device, whose device plugin reports the NUMA node to the kubelet. */
  | { readonly kind: 'device'; readonly resourceName?: string }
  /** Through nothing with a known NUMA node: a Linux bridge, or an interface without a physnet. */
  | {
      readonly kind: 'none';
      readonly bridge?: string;
      readonly interface?: string;
      readonly warning?: 'invalid-json' | 'no-config' | 'unknown-topology';
    }
  /** Unknown: the definition, or an object that it refers to, does not exist. */
  | { readonly kind: 'unknown'; readonly warning: 'not-found' | 'no-subnet' };

/** Never throws. */
export function nadFacts(nad: NadShape): NadFacts {
  const { name, namespace, annotations: metadata } = nad.metadata;
  const annotations = metadata ?? {};
  const config = nad.spec?.config ?? '';
  const refusal = refusalOf(config, name && namespace && `${namespace}/${name}`);
  return {
    physnet: bounded(annotations[NAD_PHYSNET_ANNOTATION]) || undefined,
    resourceName: bounded(annotations[RESOURCE_NAME_ANNOTATION]),
    main: mainPlugin(config),
    ...(refusal && { refusal }),
  };
}

/** Undefined if the text is longer than any name. */
function bounded(value: string | undefined): string | undefined {
  return value === undefined || value.length > MAX_VALUE_CHARACTERS ? undefined : value;
}

/** From the definition and the context only. Never throws: multus refuses a configuration that cannot be parsed. */
export function classifyNad({ physnet, resourceName, main }: NadFacts, context: NetworkContext): NetworkClass {
  if (physnet !== undefined) return { kind: 'physnet', physnet };
  return typeof main === 'string' ? { kind: 'none', warning: main } : classifyPlugin(main, resourceName, context);
}

/** Whether the definition is for a primary user-defined network, which replaces the pod network. */
export function isPrimaryNetwork({ main }: NadFacts): boolean {
  return typeof main !== 'string' && main.type === 'ovn-k8s-cni-overlay' && main.role === 'primary';
}

function classifyPlugin(conf: Plugin, resourceName: string | undefined, context: NetworkContext): NetworkClass {
  switch (conf.type) {
    case 'ovn-k8s-cni-overlay':
      return classifyOvnKubernetes(conf);
    case 'kube-ovn':
      return classifyKubeOvn(conf, context);
    case 'ovs': {
      // Without a bridge the plugin derives one from its virtual function.
      if (conf.bridge === undefined) return resourceName ? { kind: 'device', resourceName } : { kind: 'none' };
      const physnet = context.bridgePhysnets.get(conf.bridge);
      return physnet === undefined ? { kind: 'none', bridge: conf.bridge } : { kind: 'physnet', physnet };
    }
    case 'macvlan':
    case 'ipvlan':
    case 'vlan': {
      // A master inside the pod is not a host interface; without a master the plugin uses that of the default route.
      if (conf.master === undefined || conf.linkInContainer === true) return { kind: 'none' };
      const physnet = context.interfacePhysnets.get(conf.master);
      return physnet === undefined ? { kind: 'none', interface: conf.master } : { kind: 'physnet', physnet };
    }
    case 'sriov':
    case 'ib-sriov':
    case 'accelerated-bridge':
    case 'host-device':
      return resourceName === undefined ? { kind: 'device' } : { kind: 'device', resourceName };
    default:
      // A Linux bridge with the name of an OVS bridge is a different bridge: no lookup here.
      return conf.bridge === undefined ? { kind: 'none' } : { kind: 'none', bridge: conf.bridge };
  }
}

/** The mapping of OVN-Kubernetes' gateway bridge. */
const GATEWAY_PHYSNET = 'physnet';

function classifyOvnKubernetes(conf: Plugin): NetworkClass {
  const name = conf.name ?? '';
  switch (conf.topology) {
    case 'localnet': {
      const physnet = conf.physicalNetworkName || name;
      return physnet === '' ? { kind: 'none', warning: 'no-config' } : { kind: 'physnet', physnet };
    }
    case 'layer2':
    case 'layer3':
      if (conf.transport !== 'no-overlay') return { kind: 'tunnel' };
      // Not encapsulated: traffic leaves through the gateway bridge, or through an uplink that is mapped with the
      // network's name.
      return { kind: 'physnet', physnet: conf.uplink && name ? name : GATEWAY_PHYSNET };
    case undefined:
    case '':
      // No topology: this definition is for the default network (accelerated default interfaces).
      return { kind: 'tunnel' };
    default:
      return { kind: 'none', warning: 'unknown-topology' };
  }
}

function classifyKubeOvn(conf: Plugin, context: NetworkContext): NetworkClass {
  const subnet = context.kubeOvnSubnets.find(({ provider }) => provider === conf.provider);
  if (subnet === undefined) return { kind: 'unknown', warning: 'no-subnet' };
  if (!subnet.vlan) return { kind: 'tunnel' };
  const vlan = context.kubeOvnVlans.find(({ name }) => name === subnet.vlan);
  return vlan === undefined ? { kind: 'unknown', warning: 'no-subnet' } : { kind: 'physnet', physnet: vlan.provider };
}
