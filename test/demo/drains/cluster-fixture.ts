import type { DemoNode } from '../../../cli/demo/nodes.ts';
import type { HostDescription } from '../../../model/host.ts';
import { CPU_MASK_ANNOTATION, FULL_PCPUS_ANNOTATION, FULL_PCPUS_ONLY } from '../../../model/names.ts';
import type { JsonRecord, KubeObject } from '../../../sandbox/objects.ts';
import type { Random } from '../../lab/random.ts';

export const PHYSNETS = ['physnet0', 'physnet1'] as const;

/** Siblings are as far apart as there are cores. */
export function hostOf(cells: number, coresEach: number, threads: number): HostDescription {
  const count = cells * coresEach;
  const siblings = (core: number) => Array.from({ length: threads }, (_, thread) => core + thread * count).join(',');
  const cores = Array.from({ length: count }, (_, core) => siblings(core));
  const cpusOf = (cell: number) => cores.slice(cell * coresEach, (cell + 1) * coresEach).join(',');
  return { cells: Array.from({ length: cells }, (_, id) => ({ id, cpus: cpusOf(id) })), cores };
}

/** Small nodes, so that VMs compete for them. */
export function randomNodes(random: Random, count: number): DemoNode[] {
  return Array.from({ length: count }, (_, index) => {
    const cells = random.oneOf([1, 2, 2]);
    const physnets = PHYSNETS.filter(() => random.chance(0.7)).map((name) => [name, [random.below(cells)]] as const);
    return {
      name: `node-${index}`,
      host: hostOf(cells, random.oneOf([6, 8, 10]), random.oneOf([2, 2, 2, 1])),
      topologyManagerPolicy: random.oneOf(['best-effort', 'restricted', 'single-numa-node']),
      labels: { disk: random.oneOf(['fast', 'slow']) },
      physnets: Object.fromEntries(physnets),
      about: '',
    };
  });
}

const STRATEGIES = ['LiveMigrate', 'LiveMigrate', 'LiveMigrate', 'LiveMigrate', 'LiveMigrateIfPossible', 'None'];
const HOST_DEVICE = { hostDevices: [{ name: 'device', deviceName: 'devices.kubevirt.io/vhost-net' }] };

export function randomMachine(random: Random, name: string, namespace: string): KubeObject {
  const group = random.oneOf(['a', 'b', 'c', 'd']);
  const isDedicated = random.chance(0.8);
  const isMasked = !isDedicated && random.chance(0.5);
  const wholeCores = isDedicated && random.chance(0.7);
  const cores = random.oneOf([1, 1, 2, 2, 3, 4]);
  const threads = random.oneOf([1, 2]);
  const networks = isDedicated && random.chance(0.5) ? [random.oneOf(PHYSNETS)] : [];
  const byHost = { labelSelector: { matchLabels: { group } }, topologyKey: 'kubernetes.io/hostname' };
  const apart = random.chance(0.3) ? [byHost] : [];
  const annotations = {
    ...(wholeCores && { [FULL_PCPUS_ANNOTATION]: FULL_PCPUS_ONLY }),
    ...(isMasked && { [CPU_MASK_ANNOTATION]: random.oneOf(['1-3', '2,3', '9', '3-11']) }),
  };
  const spec = {
    evictionStrategy: random.oneOf(STRATEGIES),
    ...(random.chance(0.1) && { nodeSelector: { disk: random.oneOf(['fast', 'slow']) } }),
    affinity: { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: apart } },
    domain: {
      cpu: { cores, threads, ...(isDedicated && { dedicatedCpuPlacement: true, isolateEmulatorThread: wholeCores }) },
      memory: { guest: random.oneOf(['1Gi', '1Gi', '8Gi', '24Gi']) },
      devices: random.chance(0.1) ? HOST_DEVICE : {},
    },
    networks: networks.map((network) => ({ name: network, multus: { networkName: network } })),
  };
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name, namespace },
    spec: {
      runStrategy: random.oneOf(['Always', 'Always', 'Once']),
      template: { metadata: { labels: { group }, annotations }, spec },
    } as unknown as JsonRecord,
  };
}
