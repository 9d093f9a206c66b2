import { createKubeClient } from '../../kube/api-transport.ts';
import { kubeconfigAccess } from '../../kube/kubeconfig.ts';
import { PODS, VIRTUAL_MACHINE_INSTANCES } from '../../sandbox/api-server/built-in-types.ts';
import { ApiError } from '../../sandbox/api-server/errors.ts';
import type { EmulatedNode } from '../../sandbox/cluster/cluster.ts';
import { at, type JsonRecord, type KubeVmi, type ObjectCondition, setCondition } from '../../sandbox/objects.ts';
import type { ControlPlane } from '../real/control-plane-stage.ts';
import { silent } from '../support/logger.ts';
import { createRemoteClient, type RemoteClient } from '../support/remote-client.ts';
import { KUBEVIRT } from './install-strategy-fixture.ts';

/**
 * Stands in for virt-handler on every node: guests run as soon as KubeVirt assigns their VMI to the node, stop when it
 * is deleted, and arrive immediately in a migration. It writes with virt-handler's own account.
 * Source: KubeVirt, pkg/virt-handler/vm.go, migration-source.go and migration-target.go.
 */
interface VirtHandler {
  stop(): Promise<void>;
}

interface VirtHandlerDeps {
  readonly plane: ControlPlane;
  readonly client: RemoteClient;
  readonly nodes: readonly EmulatedNode[];
  readonly onFault: (error: unknown) => void;
}

export async function createVirtHandler(deps: VirtHandlerDeps): Promise<VirtHandler> {
  const nodes: VirtHandler[] = [];
  for (const node of deps.nodes) nodes.push(await createNode(deps, node));
  return {
    async stop() {
      for (const node of nodes) await node.stop();
    },
  };
}

/** KubeVirt allows virt-handler to change only VMIs on its own node, which it recognises by the pod of the token. */
async function createNode(
  { plane, client: admin, onFault }: VirtHandlerDeps,
  { name: node, kubelet }: EmulatedNode,
): Promise<VirtHandler> {
  const pod = await createPod(plane, node);
  const kubeconfig = await plane.accountKubeconfig(pod, KUBEVIRT, 'kubevirt-handler', pod);
  const kube = createKubeClient(kubeconfigAccess(kubeconfig), 'virt-handler');
  const client = createRemoteClient({ client: kube, types: [VIRTUAL_MACHINE_INSTANCES], log: silent });
  await client.start();
  const edit = (vmi: KubeVmi, change: (draft: KubeVmi) => void): Promise<void> =>
    client
      .edit(VIRTUAL_MACHINE_INSTANCES, vmi, (draft) => {
        if (draft.metadata.uid !== vmi.metadata.uid) return;
        change(draft);
        draft.status = { ...draft.status, conditions: (draft.status?.conditions ?? []).map(asGoWrites) };
      })
      .then(() => undefined)
      .catch((error: unknown) => {
        if (!(error instanceof ApiError && error.http === 404)) onFault(error);
      });
  const next = (vmi: KubeVmi) => (vmi.status?.nodeName === node ? nextState(vmi) : undefined);
  const onVmi = (vmi: KubeVmi) => {
    // The state at the time of the write decides.
    if (next(vmi) !== undefined) void edit(vmi, (draft) => next(draft)?.(draft));
    // virt-launcher ends when its guest has left.
    const left = admin.get(PODS, vmi.metadata.namespace, launcherLeft(vmi, node) ?? '');
    if (left !== undefined) kubelet.exit(left.metadata.uid ?? '').catch(onFault);
  };
  const end = client.follow(VIRTUAL_MACHINE_INSTANCES, ({ type, object }) => {
    if (type !== 'DELETED') onVmi(object);
  });
  return {
    async stop() {
      end();
      client.close();
      await kube.close();
    },
  };
}

/** virt-controller patches only conditions that equal what it has read: Go writes null for a time that is not set. */
function asGoWrites(condition: ObjectCondition): ObjectCondition {
  return Object.assign({ lastProbeTime: null }, condition);
}

const seconds = () => `${new Date().toISOString().slice(0, 19)}Z`;

function nextState(vmi: KubeVmi): ((draft: KubeVmi) => void) | undefined {
  const { status = {}, metadata } = vmi;
  if (metadata.deletionTimestamp) {
    return status.phase === 'Scheduled' || status.phase === 'Running'
      ? (draft) => {
          draft.status = { ...draft.status, phase: 'Succeeded' };
        }
      : undefined;
  }
  if (status.phase === 'Scheduled') return begin;
  if (status.phase === 'Running' && isArriving(vmi)) return arrive;
  return undefined;
}

function begin(draft: KubeVmi): void {
  const conditions = [...(draft.status?.conditions ?? [])];
  for (const type of ['LiveMigratable', 'StorageLiveMigratable'])
    setCondition(conditions, { type, status: 'True' }, seconds());
  const { cores = 1, sockets = 1, threads = 1 } = (at(draft, 'spec', 'domain', 'cpu') ?? {}) as JsonRecord;
  draft.status = {
    ...draft.status,
    phase: 'Running',
    conditions,
    migrationMethod: 'LiveMigration',
    selinuxContext: 'none',
    currentCPUTopology: { cores, sockets, threads },
  };
}

function isArriving({ status }: KubeVmi): boolean {
  const migration = at(status, 'migrationState') as JsonRecord | undefined;
  return migration?.['targetNode'] !== undefined && migration['targetNode'] !== '' && migration['completed'] !== true;
}

function launcherLeft({ status }: KubeVmi, node: string): string | undefined {
  const { sourceNode, sourcePod, completed } = (at(status, 'migrationState') ?? {}) as JsonRecord;
  return completed === true && sourceNode === node ? String(sourcePod) : undefined;
}

/** One step: the target publishes its address, the guest leaves, has arrived, and its vCPUs are plugged in. */
function arrive(draft: KubeVmi): void {
  const migration = { ...(at(draft.status, 'migrationState') as JsonRecord) };
  if (migration['targetNodeAddress'] === undefined) migration['targetNodeAddress'] = '127.0.0.1';
  else if (migration['startTimestamp'] === undefined) migration['startTimestamp'] = seconds();
  else if (migration['endTimestamp'] === undefined) {
    migration['targetNodeDomainDetected'] = true;
    migration['targetNodeDomainReadyTimestamp'] = seconds();
    migration['endTimestamp'] = seconds();
    const node = String(migration['targetNode']);
    draft.metadata.labels = { ...draft.metadata.labels, 'kubevirt.io/nodeName': node };
    draft.status = { ...draft.status, nodeName: node };
  } else {
    migration['completed'] = true;
    const { cores = 1, sockets = 1, threads = 1 } = (at(draft, 'spec', 'domain', 'cpu') ?? {}) as JsonRecord;
    const conditions = (draft.status?.conditions ?? []).filter(({ type }) => type !== 'HotVCPUChange');
    draft.status = { ...draft.status, conditions, currentCPUTopology: { cores, sockets, threads } };
  }
  draft.status = { ...draft.status, migrationState: migration };
}

async function createPod(plane: ControlPlane, node: string): Promise<string> {
  const name = `virt-handler-${node}`;
  await plane.create({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: KUBEVIRT, labels: { 'kubevirt.io': 'virt-handler' } },
    spec: {
      nodeName: node,
      serviceAccountName: 'kubevirt-handler',
      tolerations: [{ operator: 'Exists' }],
      containers: [{ name: 'virt-handler', image: 'registry.example/virt-handler:v1.9.0' }],
    },
  });
  const status = { podIP: '127.0.0.1', podIPs: [{ ip: '127.0.0.1' }] };
  const path = `/api/v1/namespaces/${KUBEVIRT}/pods/${name}`;
  await plane.client.patch(`${path}/status`, 'application/merge-patch+json', { status });
  return name;
}
