import * as z from 'zod';
import type { KubeClient } from '../../kube/client.ts';
import type { SelectingSpec } from '../../model/launcher/node-selection.ts';
import type { VmiShape } from '../../model/shapes.ts';
import { usageError } from '../support/exit-status.ts';
import { readOne } from '../support/lists.ts';

/** The fields that decide a launcher's placement. Source: KubeVirt 1.9, pkg/instancetype/apply, preference/apply. */

const texts = z.record(z.string(), z.string()).nullish();
const devices = z.array(z.object({ deviceName: z.string().optional() })).nullish();

const instancetypeSpec = z.object({
  nodeSelector: texts,
  annotations: texts,
  cpu: z.object({
    guest: z.number().int().min(1),
    dedicatedCPUPlacement: z.boolean().nullish(),
    isolateEmulatorThread: z.boolean().nullish(),
    numa: z.object({ guestMappingPassthrough: z.object({}).optional() }).nullish(),
  }),
  memory: z.object({
    guest: z.union([z.string(), z.number()]).transform(String),
    hugepages: z.object({ pageSize: z.string().optional() }).nullish(),
  }),
  gpus: devices,
  hostDevices: devices,
  ioThreadsPolicy: z.string().nullish(),
  ioThreads: z.object({ supplementalPoolThreadCount: z.number().optional() }).nullish(),
});
const preferenceSpec = z.object({
  annotations: texts,
  preferSpreadSocketToCoreRatio: z.number().nullish(),
  cpu: z
    .object({
      preferredCPUTopology: z.string().nullish(),
      spreadOptions: z.object({ across: z.string().nullish(), ratio: z.number().nullish() }).nullish(),
    })
    .nullish(),
});
type Instancetype = z.infer<typeof instancetypeSpec>;
type Preference = z.infer<typeof preferenceSpec>;

type StartingVmi = VmiShape & { readonly spec: VmiShape['spec'] & SelectingSpec };

/** A field of the VM itself takes precedence where KubeVirt allows one. */
function expandVmi<Vmi extends StartingVmi>(
  vmi: Vmi,
  instancetype: Instancetype | undefined,
  preference: Preference | undefined,
): Vmi {
  const annotations = { ...preference?.annotations, ...instancetype?.annotations, ...vmi.metadata.annotations };
  const metadata = { ...vmi.metadata, annotations };
  if (instancetype === undefined) return { ...vmi, metadata };
  const { cpu, memory, nodeSelector, gpus, hostDevices, ioThreadsPolicy, ioThreads } = instancetype;
  const { domain } = vmi.spec;
  const vmiCpu = domain.cpu;
  const expanded = {
    ...domain,
    cpu: {
      ...vmiCpu,
      ...topologyOf(cpu.guest, preference),
      dedicatedCpuPlacement: cpu.dedicatedCPUPlacement ?? vmiCpu?.dedicatedCpuPlacement,
      isolateEmulatorThread: cpu.isolateEmulatorThread ?? vmiCpu?.isolateEmulatorThread,
      numa: cpu.numa ?? vmiCpu?.numa,
    },
    memory: { ...domain.memory, guest: memory.guest, hugepages: memory.hugepages ?? domain.memory?.hugepages },
    devices: {
      ...domain.devices,
      gpus: [...(domain.devices?.gpus ?? []), ...(gpus ?? [])],
      hostDevices: [...(domain.devices?.hostDevices ?? []), ...(hostDevices ?? [])],
    },
    ioThreadsPolicy: ioThreadsPolicy ?? domain.ioThreadsPolicy,
    ioThreads: ioThreads ?? domain.ioThreads,
  };
  return {
    ...vmi,
    metadata,
    spec: { ...vmi.spec, domain: expanded, nodeSelector: nodeSelector ?? vmi.spec.nodeSelector },
  };
}

const SPREAD_RATIO = 2;

function topologyOf(vcpus: number, preference: Preference | undefined) {
  const { preferredCPUTopology, spreadOptions } = preference?.cpu ?? {};
  const singleCpu = { sockets: 1, cores: 1, threads: 1 };
  if (vcpus === 1) return singleCpu;
  const ratio = spreadOptions?.ratio || preference?.preferSpreadSocketToCoreRatio || SPREAD_RATIO;
  switch (preferredCPUTopology?.replace(/^prefer/, '').toLowerCase()) {
    case 'cores':
      return { ...singleCpu, cores: vcpus };
    case 'threads':
      return { ...singleCpu, threads: vcpus };
    case 'spread':
      return { ...singleCpu, ...spread(vcpus, ratio, spreadOptions?.across ?? '') };
    default:
      return { ...singleCpu, sockets: vcpus };
  }
}

function spread(vcpus: number, ratio: number, across: string) {
  if (across === 'CoresThreads') return { threads: ratio, cores: Math.floor(vcpus / ratio) };
  if (across === 'SocketsCoresThreads') {
    return { threads: 2, cores: ratio, sockets: Math.floor(Math.floor(vcpus / 2) / ratio) };
  }
  return { cores: ratio, sockets: Math.floor(vcpus / ratio) };
}

/** A VM's `spec.instancetype` or `spec.preference`. */
export const matcher = z
  .object({ kind: z.string().nullish(), name: z.string().nullish(), inferFromVolume: z.string().nullish() })
  .nullish();
type Matcher = z.infer<typeof matcher>;

/** The kinds of the API group, with their plural. */
const KIND = /^VirtualMachine(Cluster)?(Instancetype|Preference)$/i;
const GROUP = '/apis/instancetype.kubevirt.io/v1beta1';

export interface InstancetypeObject {
  readonly kind: string;
  readonly name: string;
  readonly namespace: string;
  readonly spec: unknown;
}

/** A VM that may name an instancetype and a preference. */
export interface MatchedVm {
  readonly name: string;
  readonly namespace: string;
  readonly vmi: VmiShape & { readonly spec: SelectingSpec };
  readonly instancetype?: Matcher;
  readonly preference?: Matcher;
}

export const isInstancetypeKind = (kind: string): boolean => KIND.test(kind);

/** From the files, else the cluster. @param client undefined without a cluster @throws CliError, KubeError */
export async function expandVm<Vm extends MatchedVm>(
  vm: Vm,
  files: readonly InstancetypeObject[],
  client: Pick<KubeClient, 'get'> | undefined,
): Promise<Vm> {
  const read = async <Spec>(
    role: 'instancetype' | 'preference',
    schema: z.ZodType<Spec>,
  ): Promise<Spec | undefined> => {
    const reference = vm[role];
    if (reference == null) return undefined;
    const spec = await specOf(vm, role, reference, { files, client });
    const parsed = schema.safeParse(spec);
    if (parsed.success) return parsed.data;
    throw usageError(
      `VM ${vm.name}: ${role} ${reference.name}: ${parsed.error.issues[0]?.path.join('.')} is malformed`,
    );
  };
  const instancetype = await read('instancetype', instancetypeSpec);
  const preference = await read('preference', preferenceSpec);
  return { ...vm, vmi: expandVmi(vm.vmi, instancetype, preference) };
}

interface Sources {
  readonly files: readonly InstancetypeObject[];
  readonly client: Pick<KubeClient, 'get'> | undefined;
}

async function specOf(vm: MatchedVm, role: string, reference: NonNullable<Matcher>, { files, client }: Sources) {
  const { name, inferFromVolume } = reference;
  const what = `VM ${vm.name}: its ${role}`;
  if (!name) {
    const why = inferFromVolume ? `inferred from volume ${inferFromVolume}, which simulate does not read` : 'not named';
    throw usageError(`${what} is ${why}; give it a name in spec.${role}`);
  }
  const kind = reference.kind || `VirtualMachineCluster${role}`;
  const [, cluster] = KIND.exec(kind) ?? [];
  const same = (one: InstancetypeObject) =>
    one.kind.toLowerCase() === kind.toLowerCase().replace(/s$/, '') &&
    one.name === name &&
    (cluster !== undefined || one.namespace === vm.namespace);
  const inFile = files.find(same);
  if (inFile !== undefined) return inFile.spec;
  const add = `add it with -f: kubectl get ${kind.toLowerCase()} ${name} -o yaml`;
  if (client === undefined) throw usageError(`${what} ${name} (${kind}) is in no file; ${add}`);
  const plural = `${kind.toLowerCase().replace(/s$/, '')}s`;
  const where = cluster === undefined ? `namespaces/${vm.namespace}/${plural}` : plural;
  const path = `${GROUP}/${where}/${encodeURIComponent(name)}`;
  const object = await readOne(client, path, z.object({ spec: z.unknown() }));
  if (object === undefined)
    throw usageError(`${what} ${name} (${kind}) is neither in a file nor in the cluster; ${add}`);
  return object.spec;
}
