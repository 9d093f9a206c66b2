import { parseAllDocuments } from 'yaml';
import * as z from 'zod';
import { type NetworkAttachmentDefinition, networkAttachmentDefinition, objectMeta } from '../../kube/resources.ts';
import * as kubevirt from '../../kube/virtual-machines.ts';
import { alignedCpus, annotatedThreadsPerCore } from '../../model/alignment.ts';
import { PlumblineError } from '../../model/errors.ts';
import { wantsWholeCores } from '../../model/launcher/annotation.ts';
import { guestTopology, launcherCpus, pinnedCpus } from '../../model/launcher/cpus.ts';
import type { SelectingSpec } from '../../model/launcher/node-selection.ts';
import {
  FULL_PCPUS_ANNOTATION,
  FULL_PCPUS_ONLY,
  NUMA_AFFINITY_ANNOTATION,
  physnetResource,
  TUNNEL_RESOURCE,
} from '../../model/names.ts';
import { refText } from '../../model/networks/attachments.ts';
import { EMPTY_CONTEXT } from '../../model/networks/context.ts';
import { interfacesOf, parseAffinities } from '../../model/networks/interfaces.ts';
import { nadFacts } from '../../model/networks/nad.ts';
import { resolveNetworks } from '../../model/networks/resolve.ts';
import type { PlacementNeeds } from '../../model/placement/needs.ts';
import { networkOfResource } from '../../model/placement/preferences.ts';
import { parseQuantity, wholeValue } from '../../model/quantity.ts';
import type { VmiShape } from '../../model/shapes.ts';
import { readInput } from '../../runtime/input-file.ts';
import { ArgumentError, usageError } from '../support/exit-status.ts';
import { type InstancetypeObject, isInstancetypeKind, type MatchedVm, matcher } from './instancetypes.ts';

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
  const topology = { cores: Number(cores), threads: Number(threads) };
  const cpu = { ...topology, dedicatedCpuPlacement: true, isolateEmulatorThread: true };
  return {
    name: text.replace(/:\d+$/, ''),
    count: amount,
    networks: networks?.split(',').filter((network) => network !== '') ?? [],
    vmi: { metadata: { annotations: { [FULL_PCPUS_ANNOTATION]: FULL_PCPUS_ONLY } }, spec: { domain: { cpu } } },
  };
}

interface FileVm extends MatchedVm {
  readonly count: number;
}

export type VmFile = ReturnType<typeof readVmFile>;

/** Bytes of a file: thousands of VMs as kubectl prints them. Parsing YAML takes a second for each megabyte. */
const MAX_FILE_BYTES = 16 * 1024 * 1024;

const anyObject = z.object({ apiVersion: z.string(), kind: z.string(), metadata: objectMeta });
const withSpec = z.object({ spec: z.unknown() });

const replicas = z.number().int().min(0).max(MAX_COUNT).nullish();
const machineSpec = kubevirt.virtualMachine.shape.spec.extend({ instancetype: matcher, preference: matcher });
const replicaSetSpec = kubevirt.virtualMachineInstanceReplicaSet.shape.spec.extend({ replicas });
const poolSpec = z.object({ virtualMachineTemplate: z.object({ spec: machineSpec }), replicas });

type DeclaredVm = Omit<FileVm, 'name' | 'namespace'>;
type Declaration = Pick<z.infer<typeof machineSpec>, 'template'> & Pick<FileVm, 'instancetype' | 'preference'>;

function declared({ template, instancetype, preference }: Declaration, count = 1): DeclaredVm {
  return { vmi: { metadata: template.metadata ?? {}, spec: template.spec }, count, instancetype, preference };
}

/** By kind. */
const VMS: Readonly<Record<string, z.ZodType<DeclaredVm>>> = {
  VirtualMachine: z.object({ spec: machineSpec }).transform(({ spec }) => declared(spec)),
  VirtualMachineInstance: kubevirt.startingInstance.transform((vmi) => ({ vmi, count: 1 })),
  VirtualMachineInstanceReplicaSet: z
    .object({ spec: replicaSetSpec })
    .transform(({ spec }) => declared(spec, spec.replicas ?? 1)),
  VirtualMachinePool: z
    .object({ spec: poolSpec })
    .transform(({ spec }) => declared(spec.virtualMachineTemplate.spec, spec.replicas ?? 1)),
};

/** `-`: standard input. Other objects are ignored. @throws CliError if unreadable or a VM is malformed */
export function readVmFile(path: string, namespace: string) {
  const vms: FileVm[] = [];
  const nads: NetworkAttachmentDefinition[] = [];
  const instancetypes: InstancetypeObject[] = [];
  for (const document of documentsOf(path)) {
    const head = anyObject.safeParse(document);
    if (!head.success)
      throw usageError(`${path}: a document is not a Kubernetes object (needs apiVersion, kind, metadata)`);
    const { kind, metadata } = head.data;
    try {
      if (kind === 'NetworkAttachmentDefinition') nads.push(networkAttachmentDefinition.parse(document));
      const named = { name: metadata.name ?? kind, namespace: metadata.namespace ?? namespace };
      if (isInstancetypeKind(kind)) instancetypes.push({ ...named, kind, spec: withSpec.parse(document).spec });
      if (Object.hasOwn(VMS, kind)) vms.push({ ...named, ...VMS[kind]!.parse(document) });
    } catch (error) {
      if (!(error instanceof z.ZodError)) throw error;
      const [issue] = error.issues;
      throw usageError(`${path}: ${kind} ${metadata.name}: ${issue?.path.join('.')}: ${issue?.message}`);
    }
  }
  if (vms.length + instancetypes.length === 0)
    throw usageError(`${path}: the file has no VM (VirtualMachine, VirtualMachineInstance, …)`);
  return { vms, nads, instancetypes };
}

function documentsOf(path: string): unknown[] {
  let text: string;
  try {
    text = readInput(path, MAX_FILE_BYTES).toString();
  } catch (error) {
    throw usageError(`cannot read ${path}: ${(error as Error).message}`, { cause: error });
  }
  const documents = parseAllDocuments(text);
  if ('empty' in documents) return [];
  return documents.flatMap((document) => {
    const [problem] = document.errors;
    if (problem) throw usageError(`${path} is not valid YAML: ${problem.message.split('\n')[0]}`);
    const content: unknown = document.toJS();
    // kubectl get -o yaml writes a List.
    const items = (content as { kind?: string; items?: unknown[] } | null)?.kind?.endsWith('List')
      ? (content as { items?: unknown[] }).items
      : undefined;
    return items ?? (content === null ? [] : [content]);
  });
}
/** Physnets and `tunnel` that a VM requires, and unknown networks. @throws CliError for a malformed annotation */
export function requiredNetworks(
  { name, namespace, vmi }: FileVm,
  nads: readonly NetworkAttachmentDefinition[],
): { readonly networks: readonly string[]; readonly notes: readonly string[] } {
  const definitions = new Map(
    nads.map((nad) => [`${nad.metadata.namespace ?? namespace}/${nad.metadata.name}`, nadFacts(nad)]),
  );
  try {
    const { networks, findings } = resolveNetworks({
      interfaces: interfacesOf({ namespace, vmi }),
      preferences: parseAffinities(vmi.metadata.annotations?.[NUMA_AFFINITY_ANNOTATION] ?? ''),
      findNad: (ref) => definitions.get(refText(ref)),
      context: EMPTY_CONTEXT,
      exclusive: true,
    });
    const required = networks.flatMap((network) => {
      if (network.affinity !== 'required') return [];
      return network.kind === 'physnet' ? [network.physnet] : network.kind === 'tunnel' ? ['tunnel'] : [];
    });
    return { networks: [...new Set(required)], notes: findings.map(({ message }) => `${name}: ${message}`) };
  } catch (error) {
    if (error instanceof PlumblineError) throw usageError(`VM ${name}: ${error.message}`);
    throw error;
  }
}
