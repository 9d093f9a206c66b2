import { until } from '../../cli/demo/until.ts';
import type { KubeClient } from '../../kube/client.ts';
import { EVENTS, PODS, VIRTUAL_MACHINE_INSTANCES } from '../../sandbox/api-server/built-in-types.ts';
import type { JsonRecord, KubeObject, KubePod, KubeVmi } from '../../sandbox/objects.ts';
import type { RealCluster } from '../real/demo/real-cluster.ts';

/** Maximum seconds of any wait: a loaded machine is not a failure, and a wait ends as soon as its event occurs. */
export const PATIENCE = 180;

/** Actions of cases on VMs. */
export interface Machines {
  readonly client: KubeClient;
  /** Creates any KubeVirt object, in the namespace of the VMs unless it names another. */
  create(object: KubeObject): Promise<KubeObject>;
  /** The launchers of a VMI by name, the oldest first. */
  launchers(vmi: string, namespace?: string): KubePod[];
  /** The only launcher that has not ended. @throws StepFailed */
  launcher(vmi: string, namespace?: string): Promise<KubePod>;
  vmi(name: string, namespace?: string): KubeVmi | undefined;
  /** @throws StepFailed */
  untilPhase(name: string, phase: string, seconds?: number): Promise<KubeVmi>;
  /** Messages of Events about objects with that name. */
  events(name: string): { readonly reason: string; readonly message: string; readonly kind: string }[];
  /** Deletes an object and its dependents, and waits until it is gone. */
  remove(object: KubeObject): Promise<void>;
}

export function pathOf({ apiVersion, kind, metadata }: KubeObject, name = ''): string {
  const base = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  const plural = kind === 'NetworkAttachmentDefinition' ? 'network-attachment-definitions' : `${kind.toLowerCase()}s`;
  return `${base}/namespaces/${metadata.namespace ?? 'vms'}/${plural}${name === '' ? '' : `/${name}`}`;
}

export function machinesOn({ client: watched, plane: { client } }: RealCluster): Machines {
  const created = ({ metadata }: KubePod) => String(metadata.creationTimestamp ?? '');
  const machines: Machines = {
    client,
    create: async (object) => (await client.create(pathOf(object), object)) as KubeObject,
    launchers: (vmi, namespace = 'vms') =>
      watched
        .list(PODS)
        .filter(
          ({ metadata }) => metadata.namespace === namespace && metadata.labels?.['kubevirt.io'] === 'virt-launcher',
        )
        .filter(({ metadata }) => metadata.ownerReferences?.some(({ name }) => name === vmi))
        .sort((a, b) => created(a).localeCompare(created(b))),
    launcher: (vmi, namespace) =>
      until(`the launcher of ${vmi}`, PATIENCE, () =>
        machines
          .launchers(vmi, namespace)
          .find(({ metadata, status }) => !metadata.deletionTimestamp && status?.phase !== 'Failed'),
      ),
    vmi: (name, namespace = 'vms') => watched.get(VIRTUAL_MACHINE_INSTANCES, namespace, name),
    untilPhase: (name, phase, seconds = PATIENCE) =>
      until(`VMI ${name} to be ${phase}`, seconds, () => {
        const vmi = machines.vmi(name);
        return vmi?.status?.phase === phase ? vmi : undefined;
      }),
    events: (name) =>
      watched.list(EVENTS).flatMap((event) => {
        const about = event['involvedObject'] as { name?: string; kind?: string } | undefined;
        const { reason, message } = event as unknown as { reason: string; message: string };
        return about?.name === name ? [{ reason, message, kind: about.kind ?? '' }] : [];
      }),
    async remove(object) {
      const path = pathOf(object, object.metadata.name);
      await client.delete(path).catch(gone);
      await until(`${object.kind} ${object.metadata.name} to be gone`, PATIENCE, () =>
        client.get(path).then(
          () => undefined,
          () => true,
        ),
      );
    },
  };
  return machines;
}

function gone(error: unknown): void {
  if (!(error instanceof Error && 'status' in error && error.status === 404)) throw error;
}

export interface MachineOptions {
  readonly annotations?: Readonly<Record<string, string>>;
  readonly labels?: Readonly<Record<string, string>>;
  readonly cpu?: JsonRecord;
  /** Fields of the template's spec. */
  readonly spec?: JsonRecord;
  /** Fields of the VM's spec. */
  readonly machine?: JsonRecord;
}

export const WHOLE_CORES = { 'kubevirt.io/CPUManagerPolicyBetaOptions': 'full-pcpus-only' };
/** 9 CPUs including the emulator's. */
export const NINE = { cores: 4, threads: 2, dedicatedCpuPlacement: true, isolateEmulatorThread: true };

/** A template for a VM without disks, on the pod network. */
export function templateOf({
  annotations = WHOLE_CORES,
  labels = {},
  cpu = NINE,
  spec = {},
}: MachineOptions): JsonRecord {
  return {
    metadata: { annotations, labels },
    spec: {
      terminationGracePeriodSeconds: 0,
      ...spec,
      domain: { cpu, memory: { guest: '1Gi' }, devices: {}, ...(spec['domain'] as JsonRecord | undefined) },
    },
  };
}

export function machine(name: string, options: MachineOptions = {}): KubeObject {
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name, namespace: 'vms' },
    spec: { runStrategy: 'Always', template: templateOf(options), ...options.machine },
  };
}

/** The CPU limit of `compute`. */
export function cpusOf({ spec }: KubePod): string | undefined {
  return spec.containers.find(({ name }) => name === 'compute')?.resources?.limits?.['cpu'];
}
