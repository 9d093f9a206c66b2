import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { factsOf } from '../../cli/explain/explain.ts';
import { explainedVm, occurrence } from '../../diagnosis/objects.ts';
import { vmState } from '../../diagnosis/state.ts';
import { EVENTS, NODE_TOPOLOGIES, PODS, VIRTUAL_MACHINES } from '../../sandbox/api-server/built-in-types.ts';
import { createFixtureCluster, type FixtureCluster, REPORT } from './cluster-fixture.ts';
import { buildCli, plumbline } from './run.ts';
import { type Spoken, spoken } from './spoken.ts';

const ANNOTATED = { 'kubevirt.io/CPUManagerPolicyBetaOptions': 'full-pcpus-only' };
const DECIDED = { ...ANNOTATED, 'plumbline.dev/decision': '{"cpus":{"compute":10},"padding":1,"threadsPerCore":2}' };
const PHYSNET0 = { 'physnet.plumbline.dev/physnet0': '1' };
const LAUNCHER = { 'kubevirt.io': 'virt-launcher' };
const OWNED = [
  { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachineInstance', name: 'firewall', uid: 'vmi-uid', controller: true },
];
const UNSCHEDULABLE = {
  conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: '0/7 nodes are available' }],
};

/** CPUs of the first `cores` cores after the reserved one, on NUMA node 0. */
const busy = (cores: number) => ({
  assignments: [{ podUID: `pod-${cores}`, container: 'compute', cpus: `1-${cores},17-${16 + cores}` }],
});

describe('plumbline explain', function () {
  this.timeout(300_000);
  let cluster: FixtureCluster;

  const explained = async (...args: string[]): Promise<Spoken> => {
    const ran = await plumbline(['explain', ...args, '-o', 'json'], { kubeconfig: cluster.kubeconfig });
    assert.equal(ran.stderr, '');
    assert.equal(ran.status, 0);
    return spoken(ran.stdout);
  };

  before(async () => {
    buildCli();
    cluster = await createFixtureCluster();
    await cluster.node('free');
    await cluster.node('full', { report: busy(7) });
    await cluster.node('nearly', { report: busy(3) });
    await cluster.node('cordoned', { unschedulable: true });
    await cluster.node('tainted', { taints: [{ key: 'example.com/gpu', effect: 'NoSchedule' }] });
    await cluster.node('other', { labels: { 'kubevirt.io/schedulable': 'false' } });
    await cluster.node('dead-dpu', {
      labels: { 'k8s.ovn.org/dpu-host': '' },
      conditions: [{ type: 'plumbline.dev/DPUReady', status: 'False', message: 'last renewal 61 s ago' }],
    });
    // It has not started: 2 of the 14 free CPUs of this node near the network belong to it.
    await cluster.pod('starts', { node: 'free', status: { phase: 'Pending' } });
  });
  after(() => cluster.stop());

  it('reports that the webhook did not see a launcher', async () => {
    const pod = { cpus: 9, labels: LAUNCHER, annotations: ANNOTATED, ownerReferences: OWNED, status: UNSCHEDULABLE };
    await cluster.pod('unseen', pod);
    const { stage, why, help, causes } = await explained('pod', 'unseen');
    assert.equal(stage, 'unscheduled');
    assert.match(why, /the webhook did not see this launcher: compute asks for 9 CPUs/);
    assert.match(causes.join('\n'), /none of|all/);
    assert.match(help.join('\n'), /start the VM again once the webhook works/);
  });

  it('gives a reason for each node, the closest first', async () => {
    await cluster.pod('big', {
      cpus: 14,
      annotations: DECIDED,
      resources: PHYSNET0,
      status: UNSCHEDULABLE,
      spec: { nodeSelector: { 'kubevirt.io/schedulable': 'true' } },
    });
    const { stage, nodes, help, scheduler, source, notes } = await explained('pod', 'big');
    const kinds = Object.fromEntries(nodes.flatMap(({ kind, nodes: names }) => names.map((name) => [name, kind])));
    assert.equal(stage, 'unscheduled');
    assert.deepEqual(kinds, {
      free: 'network-elsewhere',
      full: 'network-elsewhere',
      nearly: 'network-elsewhere',
      cordoned: 'cordoned',
      tainted: 'tainted',
      other: 'not-selected',
      'dead-dpu': 'dpu',
    });
    assert.equal(nodes[0]?.kind, 'network-elsewhere');
    assert.match(help[0] ?? '', /free cores near the network on free, which is short of 2/);
    assert.equal(scheduler, '0/7 nodes are available');
    assert.equal(source, 'reports');
    assert.match(
      notes[0] ?? '',
      /computed from the nodes’ reports, because there is no plumbline-scheduler, and no extender next to kube-scheduler/,
    );
  });

  it('says that a preferred network decides the score only', async () => {
    await cluster.pod('prefers', {
      cpus: 4,
      annotations: { 'plumbline.dev/placement': '{"preferred":["physnet.plumbline.dev/physnet0"]}' },
      status: UNSCHEDULABLE,
    });
    const { notes, asks } = await explained('pod', 'prefers');
    assert.ok(asks.includes('CPUs near physnet physnet0 (preferred)'), asks.join());
    assert.match(notes.at(-1) ?? '', /decides the score of nodes only; the kubelet does not know it/);
    await cluster.sandbox.client.delete(PODS, cluster.sandbox.client.get(PODS, 'default', 'prefers')!);
  });

  it('sorts nodes by what they are short of, and draws the closest one', async () => {
    const { nodes } = await explained('pod', 'big');
    assert.deepEqual(nodes[0]?.nodes, ['free', 'nearly', 'full']);
    assert.equal(nodes[0]?.missing, 2);
    assert.match(nodes[0]?.detail ?? '', /12 of 14 needed CPUs are free/);
    const { stdout } = await plumbline(['explain', 'pod', 'big'], { kubeconfig: cluster.kubeconfig });
    assert.match(stdout, /^The closest node: free$/m);
  });

  describe('a VM', () => {
    const vm = (name: string, spec: Record<string, unknown>, status: Record<string, unknown> = {}) =>
      cluster.sandbox.client.create(VIRTUAL_MACHINES, {
        apiVersion: 'kubevirt.io/v1',
        kind: 'VirtualMachine',
        metadata: { name, namespace: 'default' },
        spec: { template: { spec: { domain: {} } }, ...spec },
        status,
      } as never);
    it('with a launcher that a kubelet rejected, after KubeVirt deleted it and its VMI', async () => {
      const message = 'SMT Alignment Error: requested 9 cpus not multiple cpus per core = 2';
      await vm('again', { runStrategy: 'Manual' });
      const rejection = (pod: string, reason = 'SMTAlignmentError') =>
        cluster.sandbox.client.create(EVENTS, {
          apiVersion: 'v1',
          kind: 'Event',
          metadata: { name: `${pod}.1`, namespace: 'default' },
          involvedObject: { kind: 'Pod', namespace: 'default', name: pod },
          type: 'Warning',
          reason,
          message,
          source: { component: 'kubelet', host: 'smt2' },
          lastTimestamp: new Date().toISOString(),
        });
      // Of another VM whose name has the same prefix.
      await rejection('virt-launcher-again-2-abcde', 'UnexpectedAdmissionError');
      const before = await explained('vm', 'again');
      assert.equal(before.stage, 'stopped');
      await rejection('virt-launcher-again-abcde');
      const { stage, why, help } = await explained('vm', 'again');
      assert.equal(stage, 'rejected');
      assert.match(why, /^the kubelet of smt2 rejected its launcher \(SMTAlignmentError\): SMT .* requested 9 cpus/);
      assert.match(why, /KubeVirt has deleted it, and starts another$/);
      assert.match(help[0] ?? '', /annotate the VM’s template/);
    });

    it('shows for each Event whose it is, and whether that is verified', async () => {
      const message = 'plumbline cannot evict it';
      await vm('quoted', { runStrategy: 'Always' });
      for (const [name, source] of [
        ['quoted.1', { component: 'plumbline-scheduler-plugin' }],
        ['quoted.2', { component: 'plumbline-webhook' }],
        ['quoted.3', {}],
      ] as const) {
        await cluster.sandbox.client.create(EVENTS, {
          apiVersion: 'v1',
          kind: 'Event',
          metadata: { name, namespace: 'default' },
          involvedObject: { kind: 'VirtualMachine', namespace: 'default', name: 'quoted' },
          type: 'Warning',
          reason: `R${name.at(-1)}`,
          message,
          source,
          lastTimestamp: new Date().toISOString(),
        });
      }
      const { stdout } = await plumbline(['explain', 'vm', 'quoted'], { kubeconfig: cluster.kubeconfig });
      const shown = stdout
        .split('\n')
        .filter((line) => line.includes(message))
        .map((line) => line.replace(/^ *\d+ s ago +/, ''));
      assert.deepEqual(shown.sort(), [
        `R1 (plumbline-scheduler-plugin): ${message}`,
        `R2 (plumbline-webhook, not verified): ${message}`,
        `R3 (unknown, not verified): ${message}`,
      ]);
    });

    it('with a rejection: shows how often KubeVirt tried and when it tries again', () => {
      const now = Date.parse('2026-11-01T10:00:00Z');
      const rejection = occurrence.parse({
        involvedObject: { kind: 'Pod', name: 'virt-launcher-again-abcde' },
        source: { component: 'kubelet' },
        reason: 'TopologyAffinityError',
        message: 'Resources cannot be allocated with Topology locality',
        lastTimestamp: '2026-11-01T09:59:50Z',
        metadata: {},
      });
      const status = { startFailure: { consecutiveFailCount: 3, retryAfterTimestamp: '2026-11-01T10:01:30Z' } };
      const subject = {
        kind: 'vm',
        namespace: 'default',
        name: 'again',
        vmi: undefined,
        pod: undefined,
        events: [],
        vm: explainedVm.parse({ metadata: { name: 'again' }, spec: { runStrategy: 'Always' }, status }),
        rejections: [rejection],
      } as const;
      assert.match(vmState(factsOf(subject, now)).text, /deleted it \(3 times in a row\), and starts another in 90 s$/);
      // An hour later, it is no reason for the missing VMI.
      assert.doesNotMatch(vmState(factsOf(subject, now + 3_600_000)).text, /rejected/);
    });
  });

  describe('with --extender', () => {
    const serve = async (status: number, answer: string): Promise<{ url: string; close(): void; asked: string[] }> => {
      const asked: string[] = [];
      const server = createServer((request, response) => {
        asked.push(request.url ?? '');
        response.writeHead(status).end(answer);
      });
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      const { port } = server.address() as AddressInfo;
      return { url: `http://127.0.0.1:${port}`, asked, close: () => server.close() };
    };

    it('uses the extender’s answer', async () => {
      await cluster.pod('asked', { cpus: 4, status: UNSCHEDULABLE });
      const node = { node: 'free', fits: false, kind: 'refused-by-kubelet', text: 'refused', reason: 'refused: x' };
      const extender = await serve(200, JSON.stringify({ active: true, nodes: [node] }));
      try {
        const { source, nodes } = await explained('pod', 'asked', '--extender', extender.url);
        assert.equal(source, 'extender');
        assert.deepEqual(extender.asked, ['/explain?pod=default%2Fasked']);
        assert.equal(nodes.find(({ kind }) => kind === 'refused-by-kubelet')?.detail, 'refused: x');
        assert.equal(
          nodes.find(({ kind }) => kind === 'unknown-node')?.text,
          'the extender does not know this node yet',
        );
      } finally {
        extender.close();
      }
    });

    for (const [what, status, answer, message] of [
      ['gives another answer', 200, '{"kind":"Status"}', /did not answer as a Plumbline extender/],
      ['does not answer with JSON', 200, 'hello', /cannot ask the extender .*not JSON/],
      ['is not ready', 503, 'plumbline: not synced yet: pods', /not synced yet: pods/],
    ] as const) {
      it(`reports an extender that ${what} in one line, with status 3`, async () => {
        await cluster.pod(`asked-${status}-${answer.length}`, { status: UNSCHEDULABLE });
        const extender = await serve(status, answer);
        try {
          const args = ['explain', 'pod', `asked-${status}-${answer.length}`, '--extender', extender.url];
          const ran = await plumbline(args, { kubeconfig: cluster.kubeconfig });
          assert.equal(ran.status, 3);
          assert.match(ran.stderr, message);
          assert.equal(ran.stderr.trim().split('\n').length, 1);
        } finally {
          extender.close();
        }
      });
    }
  });

  it('fits on a screen for any number of nodes, even on a narrow one', async () => {
    for (let i = 0; i < 60; i++) await cluster.node(`extra-${i}`, { report: busy(1 + (i % 7)) });
    await cluster.pod('crowd', { cpus: 14, annotations: DECIDED, resources: PHYSNET0, status: UNSCHEDULABLE });
    for (const columns of ['120', '60']) {
      const { stdout } = await plumbline(['explain', 'pod', 'crowd'], {
        kubeconfig: cluster.kubeconfig,
        env: { COLUMNS: columns },
      });
      const lines = stdout.trimEnd().split('\n');
      assert.ok(lines.length <= 50, `${lines.length} lines`);
      assert.match(stdout, /and \d+ more$/m);
      const longest = Math.max(...lines.map((line) => line.length));
      assert.ok(longest <= Number(columns), `${longest} columns`);
    }
    const wide = await plumbline(['explain', 'pod', 'crowd', '-o', 'wide'], { kubeconfig: cluster.kubeconfig });
    assert.match(wide.stdout, /extra-59/);
  });

  it('makes no claim without reports, and says so', async () => {
    const bare = await createFixtureCluster();
    try {
      await bare.node('mute');
      const [topology] = bare.sandbox.client.list(NODE_TOPOLOGIES);
      await bare.sandbox.client.delete(NODE_TOPOLOGIES, topology!);
      await bare.pod('waits', { cpus: 4, status: UNSCHEDULABLE });
      const { stdout } = await plumbline(['explain', 'pod', 'waits'], { kubeconfig: bare.kubeconfig });
      assert.match(stdout, /1 node does not report their topology|cannot be predicted/);
    } finally {
      await bare.stop();
    }
    assert.equal(REPORT.assignments.length, 0);
  });
});
