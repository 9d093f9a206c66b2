import { VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES } from '../../sandbox/api-server/built-in-types.ts';
import type { KubeObject } from '../../sandbox/objects.ts';
import { createFixtureCluster, type FixtureCluster } from '../cli/cluster-fixture.ts';
import { unschedulable } from '../scheduler-plugin/extender-fixture.ts';
import { vmiOwner } from '../support/vmi-owner.ts';

const ANNOTATIONS = { 'kubevirt.io/CPUManagerPolicyBetaOptions': 'full-pcpus-only' };
const DECISION = { 'plumbline.dev/decision': '{"cpus":{"compute":10},"padding":1,"threadsPerCore":2}' };
const DOMAIN = {
  cpu: { cores: 4, threads: 2, dedicatedCpuPlacement: true, isolateEmulatorThread: true },
  memory: { guest: '4Gi' },
};
const PENDING = unschedulable(
  '0/3 nodes are available: 1 DPU not ready: dead, last renewal 60 s ago, 1 no room on the NUMA nodes of a required network, 1 node(s) were unschedulable.',
);

/**
 * The cluster of the guides: three nodes; in the namespace `tenants` a VM `router` that runs on worker-1 and a VM
 * `firewall` that waits.
 */
export async function createDocsCluster(): Promise<FixtureCluster> {
  const cluster = await createFixtureCluster();
  await cluster.namespace('tenants');
  const router = await launch(cluster, 'router', { node: 'worker-1', status: { phase: 'Running' } });
  await launch(cluster, 'firewall', { status: PENDING });
  await cluster.node('worker-1', {
    report: {
      assignments: [
        {
          podUID: router,
          namespace: 'tenants',
          podName: 'virt-launcher-router',
          container: 'compute',
          cpus: '1-5,17-21',
        },
      ],
    },
  });
  await cluster.node('worker-2', { unschedulable: true });
  await cluster.node('worker-3', {
    labels: { 'k8s.ovn.org/dpu-host': '' },
    conditions: [{ type: 'plumbline.dev/DPUReady', status: 'False', message: 'dead, last renewal 61 s ago' }],
  });
  return cluster;
}

/** A VM with its instance and its launcher, as the webhook and KubeVirt create it; the launcher's uid. */
async function launch(
  { sandbox: { client }, pod }: FixtureCluster,
  name: string,
  options: { node?: string; status: Record<string, unknown> },
): Promise<string> {
  const metadata = { name, namespace: 'tenants' };
  // The sandbox's virt-controller leaves a failed instance of a run-once VM alone, and its launcher, too.
  const vmi = await client.create(VIRTUAL_MACHINE_INSTANCES, {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { ...metadata, annotations: ANNOTATIONS },
    spec: { domain: DOMAIN },
    status: { phase: 'Failed' },
  } as never);
  await client.create(VIRTUAL_MACHINES, {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata,
    spec: { runStrategy: 'Once', template: { metadata: { annotations: ANNOTATIONS }, spec: { domain: DOMAIN } } },
  } as KubeObject);
  const uid = vmi.metadata.uid ?? '';
  const launcher = await pod(`virt-launcher-${name}-x7k2p`, {
    ...options,
    namespace: 'tenants',
    cpus: 10,
    labels: { 'kubevirt.io': 'virt-launcher', 'kubevirt.io/created-by': uid },
    annotations: { ...ANNOTATIONS, ...DECISION },
    resources: { 'physnet.plumbline.dev/physnet0': '1' },
    ownerReferences: [vmiOwner(name, uid)],
  });
  return launcher.metadata.uid ?? '';
}
