import assert from 'node:assert/strict';
import { lineText } from '../../cli/support/terminal.ts';
import { type Verification, type VmFinding, verificationLines, verifyMasks } from '../../cli/verify/run.ts';
import * as types from '../../sandbox/api-server/built-in-types.ts';
import type { JsonRecord } from '../../sandbox/objects.ts';
import { NOW, STATE_TABLE } from '../diagnosis/state-table-fixture.ts';
import { useCluster } from './cluster-fixture.ts';
import { createObjectsApi } from './objects-api-stand-in.ts';

const MASK = 'plumbline.dev/cpu-mask';
const FIX = 'plumbline.dev/fix-cpu-mismatch';

interface VmOptions {
  readonly mask?: string;
  readonly fix?: string;
  readonly cores?: number;
  readonly spec?: JsonRecord;
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
    await vm('lost', { mask: '1', spec: { nodeSelector: { size: 'none' } } });
    const { status, stdout } = await run();
    assert.equal(status, 1);
    assert.match(stdout, /^ok {2}default\/seven {2}7: 2 of 3 nodes can host it: gaps, large$/m);
    assert.match(stdout, /^! {3}default\/nowhere {2}99: none of 3 nodes can host it$/m);
    assert.match(stdout, /^ +not small: the CPU mask 7 names CPU 7, which is not online on this host \(it has 0-3\)$/m);
    assert.match(stdout, /default\/lost {2}1: its node selector matches no node/);
    assert.match(stdout, /^3 VMs with a CPU mask on 3 nodes: 2 have no node$/m);
    assert.equal((await run('-o', 'name')).stdout, 'virtualmachine/lost\nvirtualmachine/nowhere\n');
  });

  it('finds invalid masks that were stored without a check', async () => {
    await vm('broken', { mask: '1:' });
    await vm('short', { mask: '1:2:3' });
    const { status, of } = await verify();
    assert.equal(status, 1);
    assert.match(of('broken').refused[0]?.message ?? '', /CPU mask "1:": entry 2 .* is empty/);
    assert.match(of('short').refused[0]?.message ?? '', /entries for 3 vCPUs, but the VM has 2/);
  });

  it('includes VMIs without a VM', async () => {
    const { metadata, spec } = templateOf({ mask: '1' }) as { metadata: JsonRecord; spec: JsonRecord };
    await cluster.sandbox.client.create(types.VIRTUAL_MACHINE_INSTANCES, {
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachineInstance',
      metadata: { ...metadata, name: 'lone', namespace: 'default' },
      spec: { ...spec, schedulerName: 'unknown' },
    });
    const { kind, nodes, running } = (await verify()).of('lone');
    assert.deepEqual([kind, nodes.length, running], ['VirtualMachineInstance', 3, undefined]);
  });

  it('marks a VM whose agent does not apply its mask', async () => {
    const { objects } = STATE_TABLE.find(({ title }) => title === 'its mask is no longer satisfied')!;
    const verification = await verifyMasks(createObjectsApi(objects), undefined, NOW);
    const [line, ...details] = verificationLines(verification, 80).map((each) => lineText(each));
    assert.equal(line, '!   tenants/fw  1:2: node n1, where it is, does not apply it');
    assert.match(details.join('\n'), /on n1, and its CPU mask is not applied: found those of 0/);
    assert.equal(verification.notApplied, 1);
  });
});
