import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createKubeClient } from '../../kube/client.ts';
import { kubeconfigAccess } from '../../kube/kubeconfig.ts';
import {
  EVENTS,
  NODES,
  PODS,
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINES,
} from '../../sandbox/api-server/built-in-types.ts';
import { createSandbox } from '../../sandbox/cluster/cluster.ts';
import { until } from '../support/until.ts';
import { temporaryDirectory } from './support.ts';

type Sandbox = ReturnType<typeof createSandbox>;

const machine = (name: string, cores: number) => ({
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachine',
  metadata: { name, namespace: 'default' },
  spec: {
    running: true,
    template: {
      spec: {
        domain: { cpu: { cores, dedicatedCpuPlacement: true, isolateEmulatorThread: true }, memory: { guest: '1Gi' } },
      },
    },
  },
});

describe('the sandbox as a whole', () => {
  let sandbox: Sandbox;
  let directory: { path: string; remove: () => Promise<void> };
  const faults: unknown[] = [];
  before(async () => {
    directory = await temporaryDirectory();
    sandbox = createSandbox({
      directory: directory.path,
      onFault: (error) => faults.push(error),
      nodes: [
        {
          name: 'worker-0',
          host: {
            cells: [
              { id: 0, cpus: '0,2,4,6,8,10,12,14' },
              { id: 1, cpus: '1,3,5,7,9,11,13,15' },
            ],
            cores: ['0,8', '1,9', '2,10', '3,11', '4,12', '5,13', '6,14', '7,15'],
          },
        },
      ],
    });
    await sandbox.start();
  });
  after(async () => {
    await sandbox.stop();
    await directory.remove();
    assert.deepEqual(faults, []);
  });
  const phase = (name: string) => sandbox.client.get(VIRTUAL_MACHINE_INSTANCES, 'default', name)?.status?.phase;

  it('runs a VM with whole cores', async () => {
    await sandbox.client.create(VIRTUAL_MACHINES, machine('even', 3));
    await until('it runs', () => phase('even') === 'Running');
    const text = await readFile(join(sandbox.node('worker-0').kubeletDirectory, 'cpu_manager_state'), 'utf8');
    const [containers] = Object.values(JSON.parse(text).entries as Record<string, Record<string, string>>);
    assert.deepEqual(containers, { compute: '2,4,10,12' });
  });
  it('fails a VM that would split a core, with the kubelet’s message', async () => {
    await sandbox.client.create(VIRTUAL_MACHINES, machine('odd', 4));
    let said: string | undefined;
    const end = sandbox.client.follow(PODS, ({ object: { metadata, status } }) => {
      if (metadata.generateName === 'virt-launcher-odd-') said = status?.message ?? said;
    });
    // KubeVirt deletes it at once.
    await until('the Event', () => sandbox.client.list(EVENTS).some(({ reason }) => reason === 'SMTAlignmentError'));
    await until('the VM waits', () => {
      const status = sandbox.client.get(VIRTUAL_MACHINES, 'default', 'odd')?.status as { printableStatus?: string };
      return status?.printableStatus === 'CrashLoopBackOff';
    });
    end();
    assert.equal(said, 'Pod was rejected: SMT Alignment Error: requested 5 cpus not multiple cpus per core = 2');
  });
  it('accepts the product’s own client as the node’s agent', async () => {
    const path = await sandbox.kubeconfig({ kind: 'node-agent', node: 'worker-0' });
    const client = createKubeClient(kubeconfigAccess(path), 'test');
    const node = (await client.get('/api/v1/nodes/worker-0')) as { metadata: { name: string } };
    assert.equal(node.metadata.name, 'worker-0');
    await client.close();
  });
  it('deletes everything of a VM with it and frees its CPUs', async () => {
    for (const vm of sandbox.client.list(VIRTUAL_MACHINES)) await sandbox.client.delete(VIRTUAL_MACHINES, vm);
    await until('the pods are gone', () => sandbox.client.list(PODS).length === 0);
    const file = join(sandbox.node('worker-0').kubeletDirectory, 'cpu_manager_state');
    await until('the CPUs are free', async () => JSON.parse(await readFile(file, 'utf8')).defaultCpuSet === '0-15');
  });
  it('lists its nodes, and names them if one is unknown', () => {
    assert.equal(sandbox.client.list(NODES).length, 1);
    assert.throws(() => sandbox.node('worker-9'), /no node worker-9; there are worker-0/);
  });
});
