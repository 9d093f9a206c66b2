import { join } from 'node:path';
import type { DemoNode } from '../../cli/demo/nodes.ts';
import { install } from '../../cli/demo/plumbline.ts';
import { until } from '../../cli/demo/until.ts';
import { EVENTS, PODS, VIRTUAL_MACHINE_INSTANCES } from '../../sandbox/api-server/built-in-types.ts';
import type { JsonRecord, KubeObject, KubePod, KubeVmi } from '../../sandbox/objects.ts';
import { aggregation } from '../real/certificates-fixture.ts';
import { namespaceOf } from '../real/control-plane-stage.ts';
import { createRealCluster, type RealCluster } from '../real/demo/real-cluster-stage.ts';
import { buildOnce, dist, root } from '../support/bundles.ts';
import { untilReported } from '../support/demo-cluster.ts';
import { buildStage } from '../support/stage.ts';
import { createRealKubeVirt } from './kubevirt-stage.ts';

/** A real control plane with KubeVirt and Plumbline, installed by its manifests, on emulated nodes. */
export type KubeVirtStage = Awaited<ReturnType<typeof startKubeVirtStage>>;

export type Cases = (stage: () => KubeVirtStage) => void;

const TWELVE_CORES: DemoNode['host'] = {
  cells: [{ id: 0, cpus: '0-23' }],
  cores: Array.from({ length: 12 }, (_, core) => `${core},${core + 12}`),
};

const NODES_OF_STAGE: readonly DemoNode[] = [
  { name: 'smt2-a', host: TWELVE_CORES, physnets: { physnet0: [0] }, about: '12 cores x 2 threads' },
  { name: 'smt2-b', host: TWELVE_CORES, physnets: { physnet0: [0] }, about: '12 cores x 2 threads' },
];

export async function startKubeVirtStage() {
  const nodes = NODES_OF_STAGE;
  buildOnce();
  return buildStage('kv-', async (directory, undo) => {
    const apiServerArgs = aggregation(directory);
    const onFault = (error: unknown) => console.error(error);
    const cluster = createRealCluster(
      { directory, nodes, packageRoot: root, onFault },
      { kubeVirt: createRealKubeVirt(), apiServerArgs },
    );
    await cluster.start();
    undo(() => cluster.stop());
    await cluster.plane.create(...['ovn-kubernetes', 'vms'].map(namespaceOf));
    const settings = { cluster, nodes, ovs: { rundir: join(directory, 'no-ovs') }, ovsNode: '', directory, dist };
    const plumbline = await install(settings);
    undo(() => plumbline.stop());
    await plumbline.ready();
    const { port } = await plumbline.webhook.ports();
    await cluster.wire({ webhook: port, extender: await plumbline.extenderPort() });
    await untilReported(cluster, nodes);
    return { ...machinesOn(cluster), cluster };
  });
}

/** Maximum seconds of any wait: a loaded machine is not a failure, and a wait ends as soon as its event occurs. */
export const PATIENCE = 180;

function pathOf({ apiVersion, kind, metadata }: KubeObject, name = ''): string {
  const base = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  const plural = kind === 'NetworkAttachmentDefinition' ? 'network-attachment-definitions' : `${kind.toLowerCase()}s`;
  return `${base}/namespaces/${metadata.namespace ?? 'vms'}/${plural}${name === '' ? '' : `/${name}`}`;
}

function machinesOn({ client: watched, plane: { client } }: RealCluster) {
  const created = ({ metadata }: KubePod) => String(metadata.creationTimestamp ?? '');
  const launchersOf = (vmi: string): KubePod[] =>
    watched
      .list(PODS)
      .filter(({ metadata }) => metadata.namespace === 'vms' && metadata.labels?.['kubevirt.io'] === 'virt-launcher')
      .filter(({ metadata }) => metadata.ownerReferences?.some(({ name }) => name === vmi))
      .sort((a, b) => created(a).localeCompare(created(b)));
  const vmiOf = (name: string): KubeVmi | undefined => watched.get(VIRTUAL_MACHINE_INSTANCES, 'vms', name);
  return {
    client,
    create: async (object: KubeObject) => (await client.create(pathOf(object), object)) as KubeObject,
    launchers: launchersOf,
    /** The only launcher that has not ended. @throws StepFailed */
    launcher: (vmi: string) =>
      until(`the launcher of ${vmi}`, PATIENCE, () =>
        launchersOf(vmi).find(({ metadata, status }) => !metadata.deletionTimestamp && status?.phase !== 'Failed'),
      ),
    vmi: vmiOf,
    untilPhase: (name: string, phase: string) =>
      until(`VMI ${name} to be ${phase}`, PATIENCE, () => {
        const vmi = vmiOf(name);
        return vmi?.status?.phase === phase ? vmi : undefined;
      }),
    events: (name: string) =>
      watched.list(EVENTS).flatMap((event) => {
        const about = event['involvedObject'] as { name?: string } | undefined;
        return about?.name === name ? [String(event['message'])] : [];
      }),
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

interface MachineOptions {
  readonly annotations?: Readonly<Record<string, string>>;
  readonly labels?: Readonly<Record<string, string>>;
  readonly cpu?: JsonRecord;
  readonly spec?: JsonRecord;
  readonly machine?: JsonRecord;
}

export const WHOLE_CORES = { 'kubevirt.io/CPUManagerPolicyBetaOptions': 'full-pcpus-only' };
/** 9 CPUs including the emulator's. */
const NINE = { cores: 4, threads: 2, dedicatedCpuPlacement: true, isolateEmulatorThread: true };

function templateOf({ annotations = WHOLE_CORES, labels = {}, cpu = NINE, spec = {} }: MachineOptions): JsonRecord {
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

export function cpusOf({ spec }: KubePod): string | undefined {
  return spec.containers.find(({ name }) => name === 'compute')?.resources?.limits?.['cpu'];
}
