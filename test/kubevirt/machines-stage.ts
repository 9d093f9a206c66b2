import { until } from '../../cli/demo/until.ts';
import { EVENTS, PODS, VIRTUAL_MACHINE_INSTANCES } from '../../sandbox/api-server/built-in-types.ts';
import type { JsonRecord, KubeObject, KubePod, KubeVmi } from '../../sandbox/objects.ts';
import type { RealCluster } from '../real/demo/real-cluster-stage.ts';

/** Maximum seconds of any wait: a loaded machine is not a failure, and a wait ends as soon as its event occurs. */
export const PATIENCE = 180;

/** Actions of cases on VMs. */
export type Machines = ReturnType<typeof machinesOn>;

export function pathOf({ apiVersion, kind, metadata }: KubeObject, name = ''): string {
  const base = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  const plural = kind === 'NetworkAttachmentDefinition' ? 'network-attachment-definitions' : `${kind.toLowerCase()}s`;
  return `${base}/namespaces/${metadata.namespace ?? 'vms'}/${plural}${name === '' ? '' : `/${name}`}`;
}

export function machinesOn({ client: watched, plane: { client } }: RealCluster) {
  const created = ({ metadata }: KubePod) => String(metadata.creationTimestamp ?? '');
  /** The launchers of a VMI by name, the oldest first. */
  const launchersOf = (vmi: string): KubePod[] =>
    watched
      .list(PODS)
      .filter(({ metadata }) => metadata.namespace === 'vms' && metadata.labels?.['kubevirt.io'] === 'virt-launcher')
      .filter(({ metadata }) => metadata.ownerReferences?.some(({ name }) => name === vmi))
      .sort((a, b) => created(a).localeCompare(created(b)));
  const vmiOf = (name: string): KubeVmi | undefined => watched.get(VIRTUAL_MACHINE_INSTANCES, 'vms', name);
  return {
    client,
    /** Creates any KubeVirt object, in the namespace of the VMs unless it names another. */
    create: async (object: KubeObject) => (await client.create(pathOf(object), object)) as KubeObject,
    launchers: launchersOf,
    /** The only launcher that has not ended. @throws StepFailed */
    launcher: (vmi: string) =>
      until(`the launcher of ${vmi}`, PATIENCE, () =>
        launchersOf(vmi).find(({ metadata, status }) => !metadata.deletionTimestamp && status?.phase !== 'Failed'),
      ),
    vmi: vmiOf,
    /** @throws StepFailed */
    untilPhase: (name: string, phase: string) =>
      until(`VMI ${name} to be ${phase}`, PATIENCE, () => {
        const vmi = vmiOf(name);
        return vmi?.status?.phase === phase ? vmi : undefined;
      }),
    /** Messages of Events about objects with that name. */
    events: (name: string) =>
      watched.list(EVENTS).flatMap((event) => {
        const about = event['involvedObject'] as { name?: string } | undefined;
        return about?.name === name ? [String(event['message'])] : [];
      }),
    /** Deletes an object and its dependents, and waits until it is gone. */
    async remove(object: KubeObject) {
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
