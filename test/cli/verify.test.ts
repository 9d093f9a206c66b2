import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import type { Verification, VmFinding } from '../../cli/verify/run.ts';
import * as types from '../../sandbox/api-server/built-in-types.ts';
import type { JsonRecord, KubeObject, KubePod } from '../../sandbox/objects.ts';
import { useCluster } from './cluster-fixture.ts';

const MASK = 'plumbline.dev/cpu-mask';
const FIX = 'plumbline.dev/fix-cpu-mismatch';

interface VmOptions {
  readonly mask?: string;
  readonly fix?: string;
  readonly cores?: number;
  readonly spec?: JsonRecord;
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await delay(10);
}

const four = { cells: [{ id: 0, cpus: '0-3' }], cores: ['0', '1', '2', '3'], reserved: '0', physnets: [] };

describe('plumbline verify', function () {
  this.timeout(300_000);
  const cluster = useCluster(async (made) => {
    await made.node('large', { labels: { size: 'large' } });
    await made.node('small', { labels: { size: 'small' }, report: four });
    const gaps = { ...four, cells: [{ id: 0, cpus: '0,1,3,7' }], cores: ['0', '1', '3', '7'] };
    await made.node('gaps', { report: gaps });
  });
  afterEach(async () => {
    const { client } = cluster.sandbox;
    for (const type of [types.VIRTUAL_MACHINES, types.VIRTUAL_MACHINE_INSTANCES]) {
      for (const one of client.list(type)) await client.delete(type, one);
    }
  });

  const templateOf = ({ mask, fix, cores = 2, spec = {} }: VmOptions): JsonRecord => ({
    metadata: { annotations: { ...(mask !== undefined && { [MASK]: mask }), ...(fix && { [FIX]: fix }) } },
    spec: { domain: { cpu: { cores } }, ...spec },
  });
  const vm = (name: string, options: VmOptions) =>
    cluster.sandbox.client.create(types.VIRTUAL_MACHINES, {
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachine',
      metadata: { name, namespace: 'default' },
      spec: { runStrategy: 'Halted', template: templateOf(options) },
    });
  const run = (...args: string[]) => cluster.run('verify', ...args);
  const verify = async () => {
    const { status, stdout } = await run('-o', 'json');
    const found = JSON.parse(stdout) as Verification;
    return { status, found, of: (name: string) => found.vms.find((vm) => vm.name === name) as VmFinding };
  };

  it('reports that there is nothing to verify if no VM has a mask that pins', async () => {
    await vm('plain', {});
    await vm('all', { mask: 'all' });
    assert.deepEqual(await run(), { status: 0, stdout: 'no VM has a CPU mask: nothing to check\n', stderr: '' });
  });

  it('exits with 0 if each VM has a node, and lists the nodes that could not host each VM', async () => {
    await vm('anywhere', { mask: '1,3' });
    await vm('seven', { mask: '7' });
    await vm('reserved', { mask: '0:all' });
    await vm('wide', { mask: '2:30', fix: 'true' });
    const { status, found, of } = await verify();
    assert.equal(status, 1, 'CPU 0 is reserved everywhere');
    assert.deepEqual([found.withoutNode, found.nodes, found.reporting], [1, 3, 3]);
    assert.deepEqual(of('anywhere').nodes, ['gaps', 'large', 'small']);
    assert.deepEqual(of('seven').nodes, ['gaps', 'large']);
    const message = 'the CPU mask 7 names CPU 7, which is not online on this host (it has 0-3)';
    assert.deepEqual(of('seven').refused, [{ node: 'small', reason: 'host-cpus', message }]);
    assert.deepEqual(of('reserved').nodes, []);
    assert.deepEqual(of('wide').nodes, ['gaps', 'large', 'small']);
    assert.deepEqual(of('wide').fallBack, ['gaps', 'small']);
    const { client } = cluster.sandbox;
    await client.delete(types.VIRTUAL_MACHINES, client.get(types.VIRTUAL_MACHINES, 'default', 'reserved')!);
    assert.equal((await run()).status, 0);
  });

  it('prints the same as text, node by node', async () => {
    await vm('seven', { mask: '7' });
    await vm('nowhere', { mask: '99' });
    const { status, stdout } = await run();
    assert.equal(status, 1);
    assert.match(stdout, /^ok {2}default\/seven {2}7: 2 of 3 nodes can host it: gaps, large$/m);
    assert.match(stdout, /^! {3}default\/nowhere {2}99: none of 3 nodes can host it$/m);
    assert.match(stdout, /^ +not small: the CPU mask 7 names CPU 7, which is not online on this host \(it has 0-3\)$/m);
    assert.match(stdout, /^2 VMs with a CPU mask on 3 nodes: 1 has no node$/m);
    assert.equal((await run('-o', 'name')).stdout, 'virtualmachine/nowhere\n');
  });

  it('counts only nodes that the VM may use', async () => {
    await vm('seven', { mask: '7', spec: { nodeSelector: { size: 'small' } } });
    await vm('lost', { mask: '1', spec: { nodeSelector: { size: 'none' } } });
    const { status, of } = await verify();
    assert.equal(status, 1);
    assert.deepEqual([of('seven').nodes, of('seven').refused.map(({ node }) => node)], [[], ['small']]);
    assert.deepEqual([of('lost').nodes, of('lost').refused], [[], []]);
    assert.match((await run()).stdout, /default\/lost {2}1: its node selector matches no node/);
  });

  it('finds invalid masks that were stored without a check', async () => {
    await vm('broken', { mask: '1:' });
    await vm('short', { mask: '1:2:3' });
    const { status, of } = await verify();
    assert.equal(status, 1);
    assert.match(of('broken').refused[0]?.message ?? '', /CPU mask "1:": entry 2 .* is empty/);
    assert.match(of('short').refused[0]?.message ?? '', /entries for 3 vCPUs, but the VM has 2/);
  });

  it('includes VMIs without a VM, and the agent’s result for a running one', async () => {
    const { client } = cluster.sandbox;
    await cluster.node('runs', { labels: { size: 'runs' }, report: four });
    const { metadata, spec } = templateOf({ mask: '1' }) as { metadata: JsonRecord; spec: JsonRecord };
    await client.create(types.VIRTUAL_MACHINE_INSTANCES, {
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachineInstance',
      metadata: { ...metadata, name: 'lone', namespace: 'default' },
      spec: { ...spec, schedulerName: 'unknown' },
    });
    await until(() => client.list(types.PODS).length === 1);
    const [launcher] = client.list(types.PODS);
    await client.bind(launcher!, 'runs');
    const runs = (draft: KubePod) => Object.assign(draft, { status: { ...draft.status, phase: 'Running' } });
    await client.edit(types.PODS, client.list(types.PODS)[0]!, runs, 'status');
    await until(() => client.get(types.VIRTUAL_MACHINE_INSTANCES, 'default', 'lone')?.status?.phase === 'Running');
    const refusal = { namespace: 'default', podName: 'lone', vcpus: 1, reason: 'Threads', message: 'expected 2' };
    const pinning = [{ podUID: launcher!.metadata.uid!, state: 'refused', ...refusal }];
    const report = client.get(types.NODE_TOPOLOGIES, undefined, 'runs')!;
    const says = (draft: KubeObject) => Object.assign(draft, { status: { ...(draft.status as JsonRecord), pinning } });
    await client.edit(types.NODE_TOPOLOGIES, report, says, 'status');
    const { status, of } = await verify();
    assert.equal(status, 1, 'the agent of its node refuses it');
    const { kind, running } = of('lone');
    assert.deepEqual([kind, running?.node], ['VirtualMachineInstance', 'runs']);
    assert.deepEqual([running?.verdict, running?.reason], ['degraded', 'MaskNotApplied']);
    assert.equal(running?.text, 'on runs, and its CPU mask is not applied: expected 2');
  });
});
