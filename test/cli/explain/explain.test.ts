import assert from 'node:assert/strict';
import type { NodeTopologyStatus } from '../../../kube/node-topology.ts';
import { NODE_TOPOLOGIES } from '../../../sandbox/api-server/built-in-types.ts';
import { type PodOptions, useCluster } from '../cluster-fixture.ts';
import { type Spoken, spoken } from '../spoken.ts';

const MASK = 'plumbline.dev/cpu-mask';
const FIX = 'plumbline.dev/fix-cpu-mismatch';
const WAITS = {
  conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: '0/5 nodes' }],
};
const SMALL: Partial<NodeTopologyStatus> = {
  cells: [{ id: 0, cpus: '0-3' }],
  cores: ['0', '1', '2', '3'],
  reserved: '0',
  physnets: [],
};

const SHARED = { requests: { cpu: '200m' }, limits: { 'devices.kubevirt.io/kvm': '1' } };

/** The launcher of a VM on shared CPUs. */
const masked = (mask: string, more: PodOptions = {}): PodOptions => ({
  labels: { 'kubevirt.io': 'virt-launcher' },
  ...more,
  annotations: { [MASK]: mask, ...more.annotations },
  spec: { containers: [{ name: 'compute', image: 'x', resources: SHARED }], ...more.spec },
});

describe('plumbline explain for VMs with CPU masks', function () {
  this.timeout(300_000);
  const cluster = useCluster(async (made) => {
    for (const name of ['small-1', 'small-2', 'dead']) await made.node(name, { report: SMALL });
    await made.node('numa1');
    await made.node('mute');
    const { client } = made.sandbox;
    await client.delete(NODE_TOPOLOGIES, client.get(NODE_TOPOLOGIES, undefined, 'mute')!);
    await made.namespace('plumbline-system');
    const renewTime = '2026-11-01T10:00:00.000000Z';
    await made.lease('plumbline-system', 'plumbline-agent-dead', { leaseDurationSeconds: 40, renewTime });
  });

  const explained = async (kind: string, name: string): Promise<Spoken> => {
    const ran = await cluster.run('explain', kind, name, '-o', 'json');
    assert.equal(ran.stderr, '');
    return spoken(ran.stdout);
  };
  const kindsOf = ({ nodes }: Spoken) =>
    Object.fromEntries(nodes.flatMap(({ kind, nodes: names }) => names.map((name) => [name, kind])));

  describe('that wait, without the extender', () => {
    it('compares each node with the mask, and checks its agent', async () => {
      await cluster.pod('far', masked('2:22', { status: WAITS }));
      const found = await explained('pod', 'far');
      const small = { 'small-1': 'cpu-mask', 'small-2': 'cpu-mask' };
      assert.deepEqual(kindsOf(found), { numa1: 'fits', ...small, dead: 'stale-report', mute: 'no-report' });
      assert.equal(found.why, 'it is pending although 1 of 5 nodes could run it');
      assert.deepEqual(found.asks, ['no dedicated CPUs', 'the CPU mask 2:22']);
      const lacks = found.nodes.find(({ kind }) => kind === 'cpu-mask');
      assert.match(lacks?.detail ?? '', /the CPU mask 2:22 names CPU 22, which is not online on .* \(it has 0-3\)/);
      const dead = found.nodes.find(({ kind }) => kind === 'stale-report');
      assert.equal(dead?.text, 'CPU mask cannot be applied: node’s agent has stopped reporting');
    });

    it('does not claim that a node that would use all CPUs satisfies the mask', async () => {
      await cluster.pod('fixed', masked('2:22', { status: WAITS, annotations: { [FIX]: 'true' } }));
      const { why, asks, nodes } = await explained('pod', 'fixed');
      assert.equal(why, 'it is pending although 3 of 5 nodes could run it');
      assert.equal(asks[1], 'the CPU mask 2:22, or all CPUs on a node that lacks some of them');
      const others = nodes.find(({ nodes: names }) => names.includes('small-1'));
      assert.deepEqual([others?.text, others?.count], ['could run it, with warnings', 2]);
      assert.match(others?.detail ?? '', /lacks CPUs of the CPU mask: the VM runs on all CPUs there, if no other node/);
    });

    it('does not advise dedicated CPUs, which masks exclude', async () => {
      const { causes, help } = await explained('pod', 'far');
      assert.doesNotMatch([...causes, ...help].join(), /dedicatedCpuPlacement|no dedicated CPUs/);
      await cluster.pod('shared', { ...masked('all'), status: WAITS });
      assert.match((await explained('pod', 'shared')).help.join(), /set dedicatedCpuPlacement/);
    });
  });
});
