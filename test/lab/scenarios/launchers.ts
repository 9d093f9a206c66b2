import { isAlreadyExists } from '../../../kube/client.ts';
import { FULL_PCPUS_ANNOTATION, FULL_PCPUS_ONLY } from '../../../model/names.ts';
import { type CreatedVmi, launcherFor, localnet, virtualMachineInstance } from '../../real/webhook/objects-fixture.ts';
import { NAMESPACE } from '../cluster.ts';
import { SCHEDULER } from './control-daemons.ts';
import type { Scene } from './scenario.ts';
import type { ScenePod } from './scene-pods.ts';

/** The request of every launcher, by which the scheduler selects pods for the extender. */
const KVM = 'devices.kubevirt.io/kvm';

export interface LauncherOptions {
  readonly cpu: string;
  readonly physnets?: readonly string[];
  readonly spansCells?: boolean;
  /** The node that it is bound to without the scheduler; default: the scheduler that calls the extender decides. */
  readonly nodeName?: string;
  readonly amounts?: Readonly<Record<string, string>>;
  readonly container?: object;
  readonly spec?: object;
}

interface Launched {
  readonly metadata: { readonly name: string; readonly uid: string };
  readonly spec: {
    readonly containers: readonly { readonly resources: { readonly limits: Record<string, string> } }[];
  };
}

export interface Launcher extends ScenePod {
  readonly limits: Readonly<Record<string, string>>;
}

export async function launch(scene: Scene, name: string, options: LauncherOptions): Promise<Launcher> {
  const { client } = scene.cluster;
  const { cpu, nodeName, amounts: others = {}, container = {}, spec: more = {} } = options;
  const vmi = vmiOf(name, options);
  const path = `/apis/kubevirt.io/v1/namespaces/${NAMESPACE}/virtualmachineinstances`;
  scene.undo(() => client.delete(`${path}/${name}`));
  const created = (await client.create(path, vmi)) as CreatedVmi;
  const amounts = { cpu, memory: '16Mi', [KVM]: '1', ...others };
  const compute = { name: 'compute', image: 'lab/pause:1', imagePullPolicy: 'Never' };
  const pod = launcherFor(created, {
    cpu,
    spec: {
      restartPolicy: 'Never',
      terminationGracePeriodSeconds: 1,
      automountServiceAccountToken: false,
      ...(nodeName === undefined ? { schedulerName: SCHEDULER } : { nodeName }),
      containers: [{ ...compute, ...container, resources: { requests: amounts, limits: amounts } }],
      ...more,
    },
  });
  const { metadata, spec } = (await client.create(`/api/v1/namespaces/${NAMESPACE}/pods`, pod)) as Launched;
  return { name: metadata.name, uid: metadata.uid, limits: spec.containers[0]?.resources.limits ?? {} };
}

function vmiOf(name: string, options: LauncherOptions) {
  const { physnets = [], spansCells = false } = options;
  return virtualMachineInstance(name, {
    namespace: NAMESPACE,
    annotations: { [FULL_PCPUS_ANNOTATION]: FULL_PCPUS_ONLY },
    cpu: { cores: 1, threads: 2, ...(spansCells && { numa: { guestMappingPassthrough: {} } }) },
    networks: Object.fromEntries(physnets.map((physnet, i) => [`net${i + 1}`, physnet])),
  });
}

export async function createNetworks({ cluster }: Scene, physnets: readonly string[]): Promise<void> {
  const path = `/apis/k8s.cni.cncf.io/v1/namespaces/${NAMESPACE}/network-attachment-definitions`;
  for (const physnet of physnets) {
    await cluster.client.create(path, localnet(NAMESPACE, physnet)).catch((error: unknown) => {
      if (!isAlreadyExists(error)) throw error;
    });
  }
}

/** The device of KubeVirt's virt-handler; a waiting launcher does not use it. */
export async function offerKvm({ cluster, node }: Scene): Promise<void> {
  const status = { capacity: { [KVM]: '110' }, allocatable: { [KVM]: '110' } };
  await cluster.client.patch(`/api/v1/nodes/${node.name}/status`, 'application/merge-patch+json', { status });
}
