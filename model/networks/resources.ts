import { cut, type Finding } from '../errors.ts';
import { NUMA_AFFINITY_ANNOTATION, physnetResource, TUNNEL_RESOURCE } from '../names.ts';
import { networkWarning, type ResolvedNetwork } from './resolve.ts';

export interface ReportedNetworks {
  readonly physnets: Pick<ReadonlySet<string>, 'has'>;
  readonly tunnel: boolean;
  /**
   * Resources that some kubelet still has: a network without a report among them was reported until a moment ago, and
   * its node reports it again as soon as its agent does. A kubelet forgets a device 5 minutes after its plugin.
   */
  readonly devices?: Pick<ReadonlySet<string>, 'has'> | undefined;
}

/** For checking which resources a pod may request, independent of the current reports. */
export const EVERY_NETWORK: ReportedNetworks = Object.freeze({ physnets: { has: () => true }, tunnel: true });

interface RequiredResources {
  /** Each once, in the order of the interfaces. */
  readonly resources: readonly string[];
  readonly requiredNetworks: readonly ResolvedNetwork[];
  /** Required networks for which no device is requested. */
  readonly withoutDevice: readonly ResolvedNetwork[];
  readonly findings: readonly Finding[];
}

/**
 * One for each required physnet or tunnel; none without exclusive CPUs. A network that no node reports has no device:
 * required by default it is left out, because the pod might wait forever. If the user requires it, or if a kubelet still
 * has its device, the pod waits.
 */
export function requiredResources(
  networks: readonly ResolvedNetwork[],
  reported: ReportedNetworks,
  exclusive: boolean,
): RequiredResources {
  const resources = new Set<string>();
  const requiredNetworks: ResolvedNetwork[] = [];
  const withoutDevice: ResolvedNetwork[] = [];
  const findings: Finding[] = [];
  for (const network of exclusive ? networks : []) {
    if (network.affinity !== 'required') continue;
    const resource = resourceOf(network);
    const isPassing = typeof resource === 'string' && reported.devices?.has(resource) === true;
    const missing = isReported(network, reported) ? undefined : unreported(network, isPassing);
    if (missing !== undefined) findings.push(missing);
    if (missing !== undefined && network.explicit !== true && !isPassing) {
      withoutDevice.push(network);
      continue;
    }
    if (typeof resource === 'string') {
      resources.add(resource);
      requiredNetworks.push(network);
    } else if (resource !== undefined) findings.push(resource);
  }
  return { resources: [...resources], requiredNetworks, withoutDevice, findings };
}

/** No device is requested for them; they only affect the score. */
export function preferredResources(networks: readonly ResolvedNetwork[]): readonly string[] {
  const preferred = networks.filter(({ affinity }) => affinity === 'preferred');
  return [...new Set(interfaceResources(preferred).map(([resource]) => resource))];
}

export function interfaceResources(
  networks: readonly ResolvedNetwork[],
): readonly (readonly [resource: string, name: string])[] {
  return networks.flatMap((network) => {
    const resource = network.affinity === 'none' ? undefined : resourceOf(network);
    return typeof resource === 'string' ? [[resource, network.name] as const] : [];
  });
}

const MAX_NAME_CHARACTERS = 100;
const MAX_REASON_CHARACTERS = 300;

function isReported(network: ResolvedNetwork, reported: ReportedNetworks): boolean {
  if (network.kind === 'tunnel') return reported.tunnel;
  return network.kind !== 'physnet' || reported.physnets.has(network.physnet);
}

function unreported(network: ResolvedNetwork, isPassing: boolean): Finding {
  const name = cut(network.name, MAX_NAME_CHARACTERS);
  const physnet = network.kind === 'physnet' ? network.physnet : undefined;
  const what = physnet === undefined ? 'a tunnel endpoint' : `the physnet ${cut(physnet, MAX_NAME_CHARACTERS)}`;
  const asRequired = `it waits until one does, as the annotation ${NUMA_AFFINITY_ANNOTATION} requires`;
  const byDefault = isPassing
    ? 'it waits until one does again: a kubelet still has its device'
    : 'it gets no NUMA affinity, until it is started again with such a node';
  const then = network.explicit ? asRequired : byDefault;
  const message = `interface ${name}: no node reports ${what} of ${cut(network.network, MAX_NAME_CHARACTERS)}; ${then}`;
  return networkWarning(physnet === undefined ? 'unknown-tunnel' : 'unknown-physnet', message);
}

function resourceOf(network: ResolvedNetwork): string | Finding | undefined {
  if (network.kind === 'tunnel') return TUNNEL_RESOURCE;
  if (network.kind !== 'physnet') return undefined;
  try {
    return physnetResource(network.physnet);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    const name = cut(network.name, MAX_NAME_CHARACTERS);
    return networkWarning('physnet-name-too-long', `interface ${name}: ${cut(error.message, MAX_REASON_CHARACTERS)}`);
  }
}
