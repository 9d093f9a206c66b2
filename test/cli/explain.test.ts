import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { factsOf } from '../../cli/explain/explain.ts';
import { explainedVm, occurrence } from '../../diagnosis/objects.ts';
import { vmState } from '../../diagnosis/state.ts';
import {
  EVENTS,
  LEASES,
  NAMESPACES,
  NODE_TOPOLOGIES,
  PODS,
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINES,
} from '../../sandbox/api-server/built-in-types.ts';
import type { KubeObject } from '../../sandbox/objects.ts';
import { eventually } from '../support/eventually.ts';
import { createFixtureCluster, type FixtureCluster, type PodOptions, REPORT } from './cluster-fixture.ts';
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

/** An unscheduled pod, and the result of `explain pod`. */
interface Case {
  readonly title: string;
  readonly pod: PodOptions;
  readonly stage: string;
  readonly why: RegExp;
  readonly help?: RegExp;
  readonly causes?: RegExp;
}

const rejected = (reason: string, message: string) => ({ phase: 'Failed', reason, message });
const waiting = (message: string) => ({
  phase: 'Pending',
  containerStatuses: [{ name: 'compute', state: { waiting: { reason: 'CreateContainerConfigError', message } } }],
});

const CASES: readonly Case[] = [
  {
    title: 'the webhook did not see it',
    pod: { cpus: 9, labels: LAUNCHER, annotations: ANNOTATED, ownerReferences: OWNED, status: UNSCHEDULABLE },
    stage: 'unscheduled',
    why: /the webhook did not see this launcher: compute asks for 9 CPUs/,
    causes: /none of|all/,
    help: /start the VM again once the webhook works/,
  },
  {
    title: 'no scheduler has tried it',
    pod: { cpus: 4 },
    stage: 'unscheduled',
    why: /could run it/,
    help: /unknown has not tried it yet/,
  },
  {
    title: 'rejected: no whole cores, not annotated',
    pod: { cpus: 3, node: 'free', status: rejected('SMTAlignmentError', 'SMT Alignment Error: requested 3 cpus') },
    stage: 'rejected',
    why: /the kubelet of free rejected it \(SMTAlignmentError\): SMT Alignment Error/,
    help: /annotate the VM’s template/,
  },
  {
    title: 'rejected: no NUMA alignment',
    pod: { cpus: 4, node: 'free', status: rejected('TopologyAffinityError', 'Resources cannot be allocated') },
    stage: 'rejected',
    why: /TopologyAffinityError/,
    help: /extender/,
  },
  {
    title: 'rejected: another resource was missing',
    pod: { cpus: 4, node: 'free', status: rejected('UnexpectedAdmissionError', 'Allocate failed') },
    stage: 'rejected',
    why: /UnexpectedAdmissionError/,
  },
  {
    title: 'its claim was refused on the host',
    pod: {
      node: 'free',
      status: waiting(
        'device plugin PreStartContainer rpc failed with err: rpc error: code = FailedPrecondition desc = CPUs 1-2 are not whole cores',
      ),
    },
    stage: 'starting',
    why: /the agent on free refused its CPUs: CPUs 1-2 are not whole cores/,
    help: /evicts/,
  },
  {
    title: 'the DPU of its node is dead',
    pod: { node: 'dead-dpu', status: { phase: 'Pending' } },
    stage: 'starting',
    why: /the DPU of dead-dpu is not ready: last renewal 61 s ago/,
    help: /bring the DPU of dead-dpu back/,
  },
  {
    title: 'blocked by a gate',
    pod: { spec: { schedulingGates: [{ name: 'example.com/wait' }] } },
    stage: 'gated',
    why: /example\.com\/wait/,
  },
  {
    title: 'it has ended',
    pod: { node: 'free', status: { phase: 'Succeeded' } },
    stage: 'succeeded',
    why: /ended/,
  },
];

function plain(cpu: string) {
  const amounts = { cpu, memory: '1Gi' };
  return { name: 'compute', image: 'x', resources: { requests: amounts, limits: amounts } };
}

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
  });
  after(() => cluster.stop());

  for (const [i, { title, pod, stage, why, help, causes }] of CASES.entries()) {
    it(title, async () => {
      await cluster.pod(`case-${i}`, pod);
      const found = await explained('pod', `case-${i}`);
      assert.equal(found.stage, stage);
      assert.match(found.why, why);
      if (help) assert.match(found.help.join('\n'), help);
      if (causes) assert.match(found.causes.join('\n'), causes);
    });
  }

  it('reports that Plumbline’s scheduler has no leader', async () => {
    await cluster.pod('stranded', { cpus: 4, spec: { schedulerName: 'plumbline-scheduler' } });
    const { stage, why, help, causes } = await explained('pod', 'stranded');
    assert.equal(stage, 'unscheduled');
    assert.equal(why, 'no scheduler tries it: no replica of plumbline-scheduler is the leader');
    assert.match(help.join(), /bring plumbline-scheduler back: plumbline doctor extender; kubectl /);
    assert.deepEqual(causes, []);
  });

  describe('with Plumbline’s own scheduler', () => {
    const holder = 'plumbline-scheduler-1_d0330f3f-eaf2-4fbe-8f41-97b5e8dc94df';
    const lease = (renewTime: string): KubeObject => ({
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { name: 'plumbline-scheduler', namespace: 'plumbline-system' },
      spec: { holderIdentity: holder, renewTime },
    });
    const microTime = (at: number) => new Date(at).toISOString().replace('Z', '000Z');
    let made: KubeObject;
    before(async () => {
      const metadata = { name: 'plumbline-system' };
      await cluster.sandbox.client.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata });
      made = await cluster.sandbox.client.create(LEASES, lease(microTime(Date.now())));
    });
    after(() => cluster.sandbox.client.delete(LEASES, made));

    it('warns if a pod has another scheduler, which may not call the extender', async () => {
      await cluster.pod('elsewhere', { cpus: 4, status: UNSCHEDULABLE, spec: { schedulerName: 'other-scheduler' } });
      const { causes, help } = await explained('pod', 'elsewhere');
      assert.match(causes.join(), /its scheduler is other-scheduler, which does not call the extender/);
      assert.match(help.join(), /create the pod again with schedulerName: plumbline-scheduler/);
    });

    it('knows that the scheduler asks about every pod of its own', async () => {
      const spec = { schedulerName: 'plumbline-scheduler', containers: [plain('4')] };
      await cluster.pod('asked-about', { status: UNSCHEDULABLE, spec });
      const { causes, why } = await explained('pod', 'asked-about');
      assert.deepEqual(causes, []);
      assert.match(why, /could run it/);
    });

    it('reports that its Lease is no longer renewed', async () => {
      await cluster.sandbox.client.edit(LEASES, made, (draft) => {
        draft.spec = { holderIdentity: holder, renewTime: microTime(Date.now() - 600_000) } as never;
      });
      const { why } = await explained('pod', 'asked-about');
      assert.match(why, /^no scheduler tries it: the Lease plumbline-scheduler was last renewed 60\d s ago$/);
    });
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

  // Of the 14 free CPUs near the network, 2 belong to the pod above, which has not started.
  it('sorts nodes by what they are short of', async () => {
    const { nodes } = await explained('pod', 'big');
    assert.deepEqual(nodes[0]?.nodes, ['free', 'nearly', 'full']);
    assert.equal(nodes[0]?.missing, 2);
    assert.match(nodes[0]?.detail ?? '', /12 of 14 needed CPUs are free/);
  });

  it('counts the CPUs of a bound pod that is not reported yet', async () => {
    await cluster.node('contended', { labels: { pool: 'contended' } });
    const spec = { nodeSelector: { pool: 'contended' } };
    await cluster.pod('in-flight', { cpus: 14, resources: PHYSNET0, node: 'contended', status: { phase: 'Pending' } });
    await cluster.pod('second', { cpus: 4, resources: PHYSNET0, status: UNSCHEDULABLE, spec });
    const { nodes } = await explained('pod', 'second');
    assert.equal(nodes.find(({ nodes: names }) => names.includes('contended'))?.kind, 'network-elsewhere');
  });

  it('does not advise to free cores for a VM larger than the NUMA node of its network', async () => {
    await cluster.node('small-cells', { labels: { pool: 'small' } });
    await cluster.node('small-cordoned', { labels: { pool: 'small' }, unschedulable: true });
    const spec = { nodeSelector: { pool: 'small' } };
    const annotations = { 'plumbline.dev/placement': '{"interfaces":{"physnet.plumbline.dev/physnet0":"dpdk-east"}}' };
    await cluster.pod('too-large', { cpus: 16, resources: PHYSNET0, annotations, status: UNSCHEDULABLE, spec });
    const { nodes, help } = await explained('pod', 'too-large');
    const group = nodes.find(({ nodes: names }) => names.includes('small-cells'));
    assert.deepEqual([group?.kind, group?.text], ['larger-than-cells', 'larger than the NUMA nodes of its networks']);
    assert.match(
      group?.detail ?? '',
      /^interface dpdk-east \(physnet physnet0\) is on NUMA node 0, where pods can have 14 CPUs at most, and it requests 16$/,
    );
    assert.equal(nodes.find(({ nodes: names }) => names.includes('small-cordoned'))?.kind, 'cordoned-and-more');
    assert.match(help[0] ?? '', /^give the VM 2 fewer CPUs/);
    assert.doesNotMatch(help.join(), /free cores/);
  });

  it('shows the CPUs of a running pod and their alignment', async () => {
    const made = await cluster.pod('runs', {
      cpus: 4,
      resources: PHYSNET0,
      node: 'runner',
      status: { phase: 'Running' },
    });
    const uid = made.metadata.uid ?? '';
    const assignments = [{ podUID: uid, container: 'compute', cpus: '8-9,24-25' }];
    await cluster.node('runner', { report: { assignments } });
    const crooked = await explained('pod', 'runs');
    assert.deepEqual([crooked.verdict, crooked.reason], ['degraded', 'NetworkElsewhere']);
    assert.match(crooked.why, /^physnet physnet0 is on NUMA node 0, its CPUs are on 1/);
    assert.match(crooked.causes.join(), /on runner, CPUs 8-9,24-25 of NUMA node 1/);
    assert.match(crooked.help.join(), /migrate or restart/);
    const away = await cluster.pod('runs-away', {
      cpus: 4,
      resources: PHYSNET0,
      annotations: { 'plumbline.dev/placement': '{"interfaces":{"physnet.plumbline.dev/physnet0":"dpdk-east"}}' },
      node: 'runner-gone',
      status: { phase: 'Running' },
    });
    const there = [{ podUID: away.metadata.uid ?? '', container: 'compute', cpus: '8-9,24-25' }];
    await cluster.node('runner-gone', { report: { assignments: there, physnets: [] } });
    const gone = await explained('pod', 'runs-away');
    assert.equal(gone.why, 'interface dpdk-east (physnet physnet0) is not on the node');
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
    const vmi = async (name: string, status: Record<string, unknown>) => {
      const meta = { name, namespace: 'default' };
      const made = await cluster.sandbox.client.create(VIRTUAL_MACHINE_INSTANCES, {
        apiVersion: 'kubevirt.io/v1',
        kind: 'VirtualMachineInstance',
        metadata: meta,
        spec: { domain: { resources: { limits: { cpu: 'no-number' } } } },
      } as never);
      await cluster.sandbox.client.edit(VIRTUAL_MACHINE_INSTANCES, made, (draft) => {
        draft.status = status as never;
      });
    };

    it('that is stopped', async () => {
      await vm('off', { runStrategy: 'Halted' });
      const { stage, help } = await explained('vm', 'off');
      assert.equal(stage, 'stopped');
      assert.deepEqual(help, ['switch it on: virtctl start off -n default']);
    });

    it('with a launcher that the webhook denied', async () => {
      const message =
        'failed to create virtual machine pod: admission webhook "launcher.plumbline.dev" denied the request: plumbline: quota';
      await vmi('denied', { phase: 'Pending', conditions: [{ type: 'Synchronized', status: 'False', message }] });
      const { stage, why, help } = await explained('vm', 'denied');
      assert.equal(stage, 'no-launcher');
      assert.match(why, /KubeVirt cannot create its launcher: .*denied the request: plumbline: quota/);
      assert.match(help.join(), /as the webhook says/);
    });

    it('with a webhook that does not answer', async () => {
      const message = 'failed calling webhook "launcher.plumbline.dev": connection refused';
      await vmi('unanswered', { phase: 'Pending', conditions: [{ type: 'Synchronized', status: 'False', message }] });
      const { why, help } = await explained('vm', 'unanswered');
      assert.match(why, /^the webhook does not answer \(connection refused\), so KubeVirt cannot create its launcher$/);
      assert.match(help.join(), /repair the webhook/);
    });

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

    it('that runs in the sandbox’s KubeVirt', async () => {
      const domain = { cpu: { cores: 2, dedicatedCpuPlacement: true }, memory: { guest: '1Gi' } };
      await vm('launched', { runStrategy: 'Always', template: { spec: { schedulerName: 'other-scheduler', domain } } });
      let found = await explained('vm', 'launched');
      await eventually(async () => {
        found = await explained('vm', 'launched');
        return found.pod !== undefined;
      }, 'a launcher');
      assert.match(found.pod ?? '', /^virt-launcher-launched-/);
      assert.equal(found.stage, 'unscheduled');
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

  it('prints the launcher with -o name, and the same as JSON with -o yaml', async () => {
    const name = await plumbline(['explain', 'pod', 'big', '-o', 'name'], { kubeconfig: cluster.kubeconfig });
    assert.equal(name.stdout, 'pod/big\n');
    const yaml = await plumbline(['explain', 'pod', 'big', '-o', 'yaml'], { kubeconfig: cluster.kubeconfig });
    assert.match(yaml.stdout, /^state: unscheduled$/m);
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
