import assert from 'node:assert/strict';
import type { NodeTopologyStatus } from '../../kube/node-topology.ts';
import {
  LEASES,
  NAMESPACES,
  NODE_TOPOLOGIES,
  VIRTUAL_MACHINE_INSTANCES,
} from '../../sandbox/api-server/built-in-types.ts';
import type { KubePod } from '../../sandbox/objects.ts';
import { createFixtureCluster, type FixtureCluster, type PodOptions } from './cluster-fixture.ts';
import { buildCli, plumbline } from './run.ts';
import { type Spoken, spoken } from './spoken.ts';

const MASK = 'plumbline.dev/cpu-mask';
const FIX = 'plumbline.dev/fix-cpu-mismatch';
const START = 'plumbline.dev/cpu-mask-start';
const RECORD = 'plumbline.dev/paused-start';
const SINCE = '2026-11-01T10:00:00Z';
const WAITS = {
  conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: '0/5 nodes' }],
};
const SMALL: Partial<NodeTopologyStatus> = {
  cells: [{ id: 0, cpus: '0-3' }],
  cores: ['0', '1', '2', '3'],
  reserved: '0',
  physnets: [],
};

/** The launcher of a VM on shared CPUs. */
const masked = (mask: string, more: PodOptions = {}): PodOptions => ({
  labels: { 'kubevirt.io': 'virt-launcher' },
  ...more,
  annotations: { [MASK]: mask, ...more.annotations },
  spec: {
    containers: [
      {
        name: 'compute',
        image: 'x',
        resources: { requests: { cpu: '200m' }, limits: { 'devices.kubevirt.io/kvm': '1' } },
      },
    ],
    ...more.spec,
  },
});

describe('plumbline explain for VMs with CPU masks', function () {
  this.timeout(300_000);
  let cluster: FixtureCluster;
  before(async () => {
    buildCli();
    cluster = await createFixtureCluster();
    for (const name of ['small-1', 'small-2', 'dead']) await cluster.node(name, { report: SMALL });
    await cluster.node('numa1');
    await cluster.node('mute');
    const topologies = cluster.sandbox.client.list(NODE_TOPOLOGIES);
    const mute = topologies.find(({ metadata }) => metadata.name === 'mute');
    await cluster.sandbox.client.delete(NODE_TOPOLOGIES, mute!);
    const metadata = { name: 'plumbline-system' };
    await cluster.sandbox.client.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata });
    await cluster.sandbox.client.create(LEASES, {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { name: 'plumbline-agent-dead', namespace: 'plumbline-system' },
      spec: { holderIdentity: 'dead', leaseDurationSeconds: 40, renewTime: '2026-11-01T10:00:00.000000Z' },
    } as never);
  });
  after(() => cluster.stop());

  const explained = async (kind: string, name: string): Promise<Spoken> => {
    const ran = await plumbline(['explain', kind, name, '-o', 'json'], { kubeconfig: cluster.kubeconfig });
    assert.equal(ran.stderr, '');
    return spoken(ran.stdout);
  };
  const kindsOf = ({ nodes }: Spoken) =>
    Object.fromEntries(nodes.flatMap(({ kind, nodes: names }) => names.map((name) => [name, kind])));

  describe('that wait, without the extender', () => {
    it('compares each node with the mask, and checks its agent', async () => {
      await cluster.pod('far', masked('2:22', { status: WAITS }));
      const found = await explained('pod', 'far');
      assert.deepEqual(kindsOf(found), {
        numa1: 'fits',
        'small-1': 'cpu-mask',
        'small-2': 'cpu-mask',
        dead: 'stale-report',
        mute: 'no-report',
      });
      assert.equal(found.why, 'it is pending although 1 of 5 nodes could run it');
      assert.deepEqual(found.asks, ['no dedicated CPUs', 'the CPU mask 2:22']);
      const lacks = found.nodes.find(({ kind }) => kind === 'cpu-mask');
      assert.match(
        lacks?.detail ?? '',
        /the CPU mask 2:22 names CPU 22, which is not online on this host \(it has 0-3\)/,
      );
      const dead = found.nodes.find(({ kind }) => kind === 'stale-report');
      assert.equal(dead?.text, 'CPU mask cannot be applied: node’s agent has stopped reporting');
    });

    it('reports that no node has the CPUs of the mask', async () => {
      await cluster.pod('nowhere', masked('90', { status: WAITS }));
      const { why, help } = await explained('pod', 'nowhere');
      assert.equal(why, 'none of 5 nodes can take it; closest match: node lacks CPUs of the CPU mask');
      assert.match(help.join(), /change the VM’s plumbline\.dev\/cpu-mask/);
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

    it('reports that the mask applies only after the start, if the user chose that', async () => {
      await cluster.pod('late', masked('1:2', { status: WAITS, annotations: { [START]: 'running' } }));
      const { asks } = await explained('pod', 'late');
      assert.equal(asks[1], `the CPU mask 1:2, applied once it runs (${START}: running)`);
    });

    it('does not advise dedicated CPUs, which masks exclude', async () => {
      const { causes, help } = await explained('pod', 'far');
      assert.doesNotMatch([...causes, ...help].join(), /dedicatedCpuPlacement|no dedicated CPUs/);
      await cluster.pod('shared', { ...masked('all'), status: WAITS });
      assert.match((await explained('pod', 'shared')).help.join(), /set dedicatedCpuPlacement/);
    });
  });

  describe('on a node', () => {
    /** A running VMI with its launcher, by default paused as Plumbline starts it. */
    const start = async (
      name: string,
      { record = `paused ${SINCE}`, paused = SINCE as string | null, mask = '1:2' as string | null } = {},
    ): Promise<KubePod> => {
      const { client } = cluster.sandbox;
      const annotations = { ...(mask !== null && { [MASK]: mask }), ...(record !== '' && { [RECORD]: record }) };
      const made = await client.create(VIRTUAL_MACHINE_INSTANCES, {
        apiVersion: 'kubevirt.io/v1',
        kind: 'VirtualMachineInstance',
        metadata: { name, namespace: 'default', annotations },
        spec: { schedulerName: 'unknown', domain: { cpu: { cores: 2 } } },
      } as never);
      const condition = {
        type: 'Paused',
        status: 'True',
        reason: 'PausedByUser',
        message: 'VMI was paused by user',
        lastTransitionTime: paused,
      };
      await client.edit(VIRTUAL_MACHINE_INSTANCES, made, (draft) => {
        draft.status = { phase: 'Running', nodeName: 'numa1', conditions: paused ? [condition] : [] } as never;
      });
      const labels = { 'kubevirt.io': 'virt-launcher', 'kubevirt.io/created-by': made.metadata.uid ?? '' };
      const options = { labels, node: 'numa1', status: { phase: 'Running' } };
      const owner = {
        apiVersion: 'kubevirt.io/v1',
        kind: 'VirtualMachineInstance',
        name,
        uid: made.metadata.uid ?? '',
        controller: true,
      };
      const pod = masked(mask ?? 'all', { ...options, ownerReferences: [owner] });
      return cluster.pod(`virt-launcher-${name}`, pod);
    };
    const report = async (
      pod: KubePod,
      state: string,
      more: { reason?: string; message?: string } = {},
    ): Promise<void> => {
      const { client } = cluster.sandbox;
      const numa1 = client.list(NODE_TOPOLOGIES).find(({ metadata }) => metadata.name === 'numa1');
      const entry = {
        podUID: pod.metadata.uid,
        namespace: 'default',
        podName: pod.metadata.name,
        state,
        vcpus: 2,
        ...more,
      };
      await client.edit(
        NODE_TOPOLOGIES,
        numa1!,
        (draft) => {
          draft.status = Object.assign({}, draft.status, { pinning: [entry] }) as never;
        },
        'status',
      );
    };

    it('shows a VM as paused, not running, until its agent reports', async () => {
      await start('silent');
      for (const [kind, name] of [
        ['vm', 'silent'],
        ['pod', 'virt-launcher-silent'],
      ] as const) {
        const { stage, why, help } = await explained(kind, name);
        assert.equal(stage, 'paused');
        assert.match(why, /^it is on numa1 and does not run until its vCPUs are pinned; its agent has not/);
        assert.match(help.join(), /^check the agent on numa1: plumbline doctor agents; kubectl /);
      }
      const text = await plumbline(['explain', 'vm', 'silent'], { kubeconfig: cluster.kubeconfig });
      assert.match(text.stdout, /^VM default\/silent is paused: it is on numa1/);
      assert.doesNotMatch(text.stdout, / runs: /);
    });

    it('shows the reason if the agent refuses the mask', async () => {
      const pod = await start('refused');
      await report(pod, 'refused', { reason: 'Empty', message: 'the CPU mask 1:2 leaves vCPU 0 without a CPU' });
      const { stage, why, help } = await explained('vm', 'refused');
      assert.equal(stage, 'paused');
      assert.match(
        why,
        /does not run until its vCPUs are pinned; its agent refuses the mask \(Empty\): .* leaves vCPU 0 without a/,
      );
      assert.match(help.join(), /correct plumbline\.dev\/cpu-mask/);
    });

    it('shows a pinned VM that is not resumed yet', async () => {
      await report(await start('soon', { record: 'waiting' }), 'pinned');
      const { stage, why } = await explained('vm', 'soon');
      assert.deepEqual([stage, why], ['paused', 'it is on numa1, pinned, and about to be resumed']);
    });

    it('shows how to end a later pause by the user', async () => {
      await start('users', { paused: '2026-11-02T08:00:00Z' });
      const { stage, why, help } = await explained('vm', 'users');
      assert.deepEqual([stage, why], ['paused', 'it is on numa1 and does not run: PausedByUser']);
      assert.match(help.join(), /virtctl unpause vmi users -n default/);
    });

    it('shows whether the mask of a running VM is applied', async () => {
      const pod = await start('runs', { paused: null, record: 'resumed' });
      const mute = await explained('vm', 'runs');
      assert.match(mute.why, /^on numa1, and its CPU mask is not applied: its agent has not reported/);
      await report(pod, 'pinned');
      assert.equal((await explained('vm', 'runs')).why, 'on numa1, its vCPUs pinned by its CPU mask');
      await report(pod, 'pinned', { reason: 'FellBack', message: '"all" was taken for it' });
      const fellBack = await explained('vm', 'runs');
      assert.deepEqual([fellBack.verdict, fellBack.reason], ['ok', 'MaskFellBack']);
      assert.match(fellBack.why, /with deviations: "all" was taken for it$/);
      await report(pod, 'unpinned', { reason: 'Threads', message: 'found those of 0' });
      const unpinned = await explained('vm', 'runs');
      assert.equal(unpinned.why, 'on numa1, and its CPU mask is not applied: found those of 0');
    });

    it('shows a paused VM without a mask as paused', async () => {
      await start('plain', { mask: null, record: '' });
      assert.equal((await explained('vm', 'plain')).stage, 'paused');
    });
  });
});
