import { alignedCpus, annotatedThreadsPerCore } from '../../model/alignment.ts';
import { wantsWholeCores } from '../../model/launcher/annotation.ts';
import { guestTopology, launcherCpus, pinnedCpus } from '../../model/launcher/cpus.ts';
import type { SelectingSpec } from '../../model/launcher/node-selection.ts';
import { FULL_PCPUS_ANNOTATION, FULL_PCPUS_ONLY, physnetResource, TUNNEL_RESOURCE } from '../../model/names.ts';
import type { PlacementNeeds } from '../../model/placement/needs.ts';
import { networkOfResource } from '../../model/placement/preferences.ts';
import { parseQuantity, wholeValue } from '../../model/quantity.ts';
import type { VmiShape } from '../../model/shapes.ts';
import { ArgumentError } from '../support/exit-status.ts';

interface VmRequest {
  /** In the user's notation: `4c2t@physnet0`, or the VM's name. */
  readonly name: string;
  /** Number of VMs; undefined: as many as fit. */
  readonly count: number | undefined;
  readonly vmi: VmiShape & { readonly spec: SelectingSpec };
  readonly networks: readonly string[];
}

export type Demand = ReturnType<typeof demandOf>;

/** As KubeVirt sizes it and the webhook pads it. @throws ParseError for a CPU or memory that is no quantity */
export function demandOf({ name, count, vmi, networks }: VmRequest, threadsPerCore: Iterable<number>) {
  const guestCpus = launcherCpus(vmi).total;
  const wholeCores = wantsWholeCores(vmi.metadata) && vmi.spec.domain.cpu?.isolateEmulatorThread === true;
  const cpus = wholeCores
    ? alignedCpus(Math.max(guestCpus, pinnedCpus(vmi).total), annotatedThreadsPerCore(threadsPerCore))
    : guestCpus;
  const resources = networks.map((network) => (network === 'tunnel' ? TUNNEL_RESOURCE : physnetResource(network)));
  const devices = new Map(resources.map((resource) => [resource, 1]));
  const { gpus, hostDevices } = vmi.spec.domain.devices ?? {};
  for (const { deviceName } of [...(gpus ?? []), ...(hostDevices ?? [])])
    if (deviceName !== undefined) devices.set(deviceName, (devices.get(deviceName) ?? 0) + 1);
  const compute = { name: 'compute', kind: 'app', cpus, devices, memory: hugePagesOf(vmi) } as const;
  const needs: PlacementNeeds = {
    request: { uid: name, guaranteed: true, containers: [compute] },
    networks: resources
      .map((resource) => networkOfResource(resource, 'required'))
      .filter((network) => network !== undefined),
    wholeCores,
    spansCells: Boolean(vmi.spec.domain.cpu?.numa?.guestMappingPassthrough),
    guestThreads: guestTopology(vmi).threads,
  };
  /** `spec` selects nodes. `cpus` are the exclusive CPUs of the launcher, including the `padding` that completes whole cores. */
  return { name, count, needs, cpus, padding: cpus - guestCpus, spec: vmi.spec };
}

/** Bytes by type: KubeVirt requests the guest's memory as huge pages (WithHugePages in renderresources.go). */
function hugePagesOf({ spec: { domain } }: VmiShape): Map<string, number> {
  const { memory, resources } = domain;
  const size = memory?.guest ?? resources?.requests?.['memory'];
  if (!memory?.hugepages?.pageSize || size === undefined) return new Map();
  return new Map([[`hugepages-${memory.hugepages.pageSize}`, wholeValue(parseQuantity(size))]]);
}

const SHAPE = /^(\d{1,4})c(?:(\d{1,2})t)?(?:@([^:@]+))?(?::(\d{1,6}))?$/;
const MAX_COUNT = 100_000;

/** `8c`, `4c2t:10`, `4c2t@physnet0:10`, `8c1t@physnet0,tunnel`: cores, threads, networks, count. @throws CliError */
export function parseShape(text: string): VmRequest {
  const [, cores = '', threads = '1', networks, count] = SHAPE.exec(text) ?? [];
  const amount = count === undefined ? undefined : Number(count);
  const wrong = (why: string) => new ArgumentError(`--vm '${text}': ${why}`);
  if (cores === '')
    throw wrong('expected cores and threads such as 8c or 4c2t, with optional @physnet and :count: 4c2t@physnet0:10');
  if (Number(cores) === 0 || Number(threads) === 0) throw wrong('a VM needs at least one core with one thread');
  // KubeVirt and QEMU support no more for a guest.
  if (Number(threads) > 2) throw wrong('KubeVirt supports at most 2 threads for each core of a guest');
  if (amount === 0 || (amount ?? 0) > MAX_COUNT) throw wrong(`expected a count from 1 to ${MAX_COUNT}`);
  return {
    name: text.replace(/:\d+$/, ''),
    count: amount,
    networks: networks?.split(',').filter((network) => network !== '') ?? [],
    vmi: {
      metadata: { annotations: { [FULL_PCPUS_ANNOTATION]: FULL_PCPUS_ONLY } },
      spec: {
        domain: {
          cpu: {
            cores: Number(cores),
            threads: Number(threads),
            dedicatedCpuPlacement: true,
            isolateEmulatorThread: true,
          },
        },
      },
    },
  };
}
