import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { explain } from '../../cli/explain/explain.ts';
import type { ClusterAccess } from '../../cli/support/cluster.ts';
import { explainedVm, occurrence } from '../../diagnosis/objects.ts';
import { EVENTS, PODS, VIRTUAL_MACHINES } from '../../sandbox/api-server/built-in-types.ts';
import { listenOnLoopback } from '../support/processes.ts';
import { useCluster } from './cluster-fixture.ts';
import { createObjectsApi } from './objects-api-stand-in.ts';
import { assertFails, plumbline } from './run.ts';
import { type Spoken, spoken } from './spoken.ts';

const ANNOTATED = { 'kubevirt.io/CPUManagerPolicyBetaOptions': 'full-pcpus-only' };
const DECIDED = { ...ANNOTATED, 'plumbline.dev/decision': '{"cpus":{"compute":10},"padding":1,"threadsPerCore":2}' };
const PHYSNET0 = { 'physnet.plumbline.dev/physnet0': '1' };
const UNSCHEDULABLE = {
  conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: '0/7 nodes are available' }],
};

/** CPUs of the first `cores` cores after the reserved one, on NUMA node 0. */
const busy = (cores: number) => ({
  assignments: [{ podUID: `pod-${cores}`, container: 'compute', cpus: `1-${cores},17-${16 + cores}` }],
});

describe('plumbline explain', function () {
  this.timeout(300_000);
  const cluster = useCluster(async (made) => {
    await made.node('free');
    await made.node('full', { report: busy(7) });
    await made.node('nearly', { report: busy(3) });
    await made.node('cordoned', { unschedulable: true });
    await made.node('tainted', { taints: [{ key: 'example.com/gpu', effect: 'NoSchedule' }] });
    await made.node('other', { labels: { 'kubevirt.io/schedulable': 'false' } });
    await made.node('dead-dpu', {
      labels: { 'k8s.ovn.org/dpu-host': '' },
      conditions: [{ type: 'plumbline.dev/DPUReady', status: 'False', message: 'last renewal 61 s ago' }],
    });
    // It has not started: 2 of the 14 free CPUs of this node near the network belong to it.
    await made.pod('starts', { node: 'free', status: { phase: 'Pending' } });
  });

  const explained = async (...args: string[]): Promise<Spoken> => {
    const ran = await cluster.run('explain', ...args, '-o', 'json');
    assert.equal(ran.stderr, '');
    assert.equal(ran.status, 0);
    return spoken(ran.stdout);
  };

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
    assert.equal(stage, 'waiting');
    const elsewhere = Object.fromEntries(['free', 'full', 'nearly'].map((name) => [name, 'network-elsewhere']));
    const excluded = { cordoned: 'cordoned', tainted: 'tainted', other: 'not-selected', 'dead-dpu': 'dpu' };
    assert.deepEqual(kinds, { ...elsewhere, ...excluded });
    assert.deepEqual(nodes[0]?.nodes, ['free', 'nearly', 'full'], 'by what they are short of');
    assert.equal(nodes[0]?.missing, 2);
    assert.match(nodes[0]?.detail ?? '', /12 of 14 needed CPUs are free/);
    assert.match(help[0] ?? '', /free cores near the network on free, which is short of 2/);
    assert.equal(scheduler, '0/7 nodes are available');
    assert.equal(source, 'reports');
    const why = 'because there is no plumbline-scheduler, and no extender next to kube-scheduler';
    assert.ok(notes[0]?.startsWith(`computed from the nodes’ reports, ${why}`), notes[0]);
    const { stdout } = await cluster.run('explain', 'pod', 'big');
    assert.match(stdout, /^The closest node: free$/m);
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

  describe('a VM', () => {
    const vm = (name: string, spec: Record<string, unknown>, status: Record<string, unknown> = {}) =>
      cluster.sandbox.client.create(VIRTUAL_MACHINES, {
        apiVersion: 'kubevirt.io/v1',
        kind: 'VirtualMachine',
        metadata: { name, namespace: 'default' },
        spec: { template: { spec: { domain: {} } }, ...spec },
        status,
      } as never);

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
      const { stdout } = await cluster.run('explain', 'vm', 'quoted');
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

    it('with a rejection: shows how often KubeVirt tried and when it tries again', async () => {
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
        ...({ kind: 'vm', namespace: 'default', name: 'again', vmi: undefined } as const),
        launchers: [],
        migrations: [],
        events: [],
        vm: explainedVm.parse({ metadata: { name: 'again' }, spec: { runStrategy: 'Always' }, status }),
        rejections: [rejection],
      };
      const access = { client: createObjectsApi({}) } as unknown as ClusterAccess;
      const textAt = async (at: number) => (await explain(access, subject, {}, at)).text;
      assert.match(await textAt(now), /deleted it \(3 times in a row\), and starts another in 90 s$/);
      // An hour later, it is no reason for the missing VMI.
      assert.doesNotMatch(await textAt(now + 3_600_000), /rejected/);
    });
  });

  describe('with --extender', () => {
    const serve = async (status: number, answer: string): Promise<{ url: string; close(): void; asked: string[] }> => {
      const asked: string[] = [];
      const server = createServer((request, response) => {
        asked.push(request.url ?? '');
        response.writeHead(status).end(answer);
      });
      return { url: `http://127.0.0.1:${await listenOnLoopback(server)}`, asked, close: () => server.close() };
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
        const unknown = nodes.find(({ kind }) => kind === 'unknown-node');
        assert.equal(unknown?.text, 'the extender does not know this node yet');
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
          assertFails(await cluster.run(...args), 3, message);
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
      const environment = { kubeconfig: cluster.kubeconfig, env: { COLUMNS: columns } };
      const { stdout } = await plumbline(['explain', 'pod', 'crowd'], environment);
      const lines = stdout.trimEnd().split('\n');
      assert.ok(lines.length <= 50, `${lines.length} lines`);
      assert.match(stdout, /and \d+ more$/m);
      const longest = Math.max(...lines.map((line) => line.length));
      assert.ok(longest <= Number(columns), `${longest} columns`);
    }
    const wide = await cluster.run('explain', 'pod', 'crowd', '-o', 'wide');
    assert.match(wide.stdout, /extra-59/);
  });
});
