import assert from 'node:assert/strict';
import { Paint } from '../../../console/data/node.ts';
import { Store } from '../../../console/data/store.ts';
import { vmsOf } from '../../../console/data/vm-list.ts';
import type { WireRecord } from '../../../console/data/wire.ts';
import { KubeError } from '../../../kube/client.ts';
import { CpuSet } from '../../../model/cpu-set.ts';
import { AGENT_READY_CONDITION, NAMESPACE } from '../../../model/names.ts';
import { podOf, statusOf, unschedulable, withUid } from '../../scheduler-plugin/extender-fixture.ts';
import { launcher, maskedPod } from '../cluster-fixture.ts';
import { type ConsoleFixture, type ConsoleUnderTest, consoleOf, LEADER, NO_ROOM, waitingPod } from '../fixture.ts';
import { type Listener, listen } from '../support.ts';

const isReady = ({ event }: { readonly event: string }) => event === 'ready';
const isRecords = ({ event }: { readonly event: string }) => event === 'message';

/** On two cores of the first NUMA node. */
const compute = (podUID: string) => ({ podUID, container: 'compute', cpus: '1-2,9-10' });

/** The content of a page after all events of a listener. */
function pageOf(events: Listener['events']): Store {
  const store = new Store();
  for (const { event, data } of events) if (event === 'message') store.take(JSON.parse(data) as WireRecord[]);
  return store;
}

describe('the stream of the console', () => {
  let under: ConsoleUnderTest;
  const listeners: Listener[] = [];
  const start = async (fixture: ConsoleFixture) => {
    under = await consoleOf(fixture);
  };
  const join = async (headers: Record<string, string> = {}) => {
    const listener = await listen(`${under.url}/events`, headers);
    listeners.push(listener);
    return listener;
  };
  /** A page that has all records. */
  const ready = async (headers?: Record<string, string>) => {
    const listener = await join(headers);
    await listener.until(isReady);
    return listener;
  };
  const deployment = (name: string, readyReplicas?: number) =>
    under.api.put('deployments', { metadata: { name, namespace: NAMESPACE }, status: { readyReplicas } } as never);
  afterEach(async () => {
    for (const listener of listeners.splice(0)) listener.close();
    await under.stop();
  });

  it('has for each node: hardware, owners by VM name, padding, networks, free cores', async () => {
    const vm = { namespace: 'east', name: 'fw', uid: 'u1', count: 4, padding: 1 };
    const devices = [{ resource: 'example.com/vf', groups: [{ cells: '0', total: 4, free: 3 }] }];
    await start({ nodes: { n1: statusOf({ assignments: [compute('u1')], pmdCPUs: '3,11', devices }) } });
    const pod = launcher(vm);
    under.see({ ...pod, spec: { ...pod.spec, nodeName: 'n1' } }, { phase: 'Running' });
    const listener = await ready();
    const node = pageOf(listener.events).nodes.get('n1')!;
    const { shape, paint, padding, owners } = node;
    const cpusWith = (accepts: (slot: number) => boolean) =>
      `${CpuSet.of([...paint.keys()].filter(accepts).map((slot) => shape!.slots[slot]!.cpu))}`;
    assert.deepEqual(owners, [['east/fw', 'compute', '1-2,9-10', 1]]);
    assert.deepEqual(node.resources, [['example.com/vf', 'NUMA 0: 3 of 4 free']]);
    const painted = [Paint.owner, Paint.reserved, Paint.polled].map((kind) => cpusWith((slot) => paint[slot] === kind));
    assert.deepEqual(painted, ['1-2,9-10', '0,8', '3,11']);
    assert.equal(
      cpusWith((slot) => padding[slot] === 1),
      '10',
    );
    assert.equal(node.freeCores, 4);
    assert.deepEqual(
      shape!.cells.map(({ id, physnets, tunnel }) => ({ id, physnets, tunnel })),
      [
        { id: 0, physnets: ['physnet0'], tunnel: false },
        { id: 1, physnets: ['physnet1'], tunnel: true },
      ],
    );
    assert.deepEqual(node.problems, []);
  });

  it('has only changes, each once: a DPU, a report, a pod in flight, a removed node', async () => {
    await start({
      nodes: { n1: statusOf(), n2: statusOf() },
      dpus: { n2: { ready: true, state: 'alive', age: 5 } },
    });
    const listener = await ready();
    /** @param only the only record */
    const news = async (change: () => void, ...only: readonly string[]) => {
      const from = listener.events.length;
      change();
      const records = JSON.parse((await listener.until(isRecords, from)).data) as WireRecord[];
      if (only.length > 0)
        assert.deepEqual(
          records.map(([kind, name]) => [kind, name]),
          [only],
        );
    };
    const node = (name: string) => pageOf(listener.events).nodes.get(name);
    await news(() => under.node('n2', { dpu: 'False' }));
    assert.deepEqual(node('n2')?.problems, ['dpu-dead']);
    const pod = waitingPod('vm', 4);
    await news(() => under.see({ ...pod, spec: { ...pod.spec, nodeName: 'n1' } }, { phase: 'Pending' }), 'n', 'n1');
    assert.deepEqual(node('n1')?.inFlight, [['east/vm', 'bound', '1-2,9-10']]);
    await news(() => under.report('n1', statusOf({ assignments: [compute('uid-vm')] })));
    assert.deepEqual([node('n1')?.inFlight, node('n1')?.owners], [[], [['east/vm', 'compute', '1-2,9-10', 1]]]);
    under.node('n2', null);
    await news(() => under.report('n2', undefined));
    await listener.until(({ data }) => data.includes('["n","n2"]'));
    assert.equal(node('n2'), undefined);
    // The same report is not sent again: the next record is the following change.
    under.report('n1', statusOf({ assignments: [compute('uid-vm')] }));
    await news(() => under.report('n1', undefined), 'n', 'n1');
    assert.deepEqual(node('n1')?.problems, ['no-report']);
  });

  it('shows a contradictory report as quarantined, without its content', async () => {
    const devices = [{ resource: 'example.com/vf', groups: [{ total: 2, free: 2 }] }];
    const nodes = { n2: statusOf({ reserved: '0,99' }), n3: statusOf(), n4: statusOf({ devices }) };
    await start({ nodes: { n1: statusOf(), ...nodes } });
    under.api.put('nodes', { metadata: { name: 'n3' }, status: { capacity: { cpu: '8' } } } as { metadata: object });
    const capacity = { cpu: '16', 'example.com/vf': '1' };
    under.api.put('nodes', { metadata: { name: 'n4' }, status: { capacity } } as { metadata: object });
    const listener = await ready();
    await listener.until(({ data }) => /"n4",.*"quarantined"/.test(data));
    const page = pageOf(listener.events);
    const pageNodes = ['n1', 'n2', 'n3', 'n4'].map((name) => page.nodes.get(name));
    assert.deepEqual(
      pageNodes.map((node) => node?.problems.join()),
      ['', 'quarantined', 'quarantined', 'quarantined'],
    );
    assert.deepEqual(
      pageNodes.map((node) => node?.shape === undefined),
      [false, true, true, true],
    );
  });

  it('shows an agent as silent if its Lease has not changed for its duration', async () => {
    await start({ nodes: { n1: statusOf() } });
    const listener = await ready();
    await under.silence('n1', '2026-05-04T10:00:00.000000Z');
    await listener.until(({ data }) => data.includes('["silent"]'));
    assert.deepEqual(pageOf(listener.events).nodes.get('n1')?.problems, ['silent']);
    under.lease('plumbline-agent-n1', { renewTime: '2026-05-04T11:00:00.000000Z', leaseDurationSeconds: 1 });
    await listener.until(({ data }) => data.includes('"problems":[]'), listener.events.length);
  });

  it('shows waiting pods with the scheduler’s message, and when they no longer wait', async () => {
    await start({ nodes: { n1: statusOf() } });
    const pod = waitingPod('vm', 40);
    under.see(pod);
    const listener = await ready();
    await listener.until(({ data }) => data.includes('"uid-vm"'));
    const [waits] = [...pageOf(listener.events).pods.values()];
    const { vm, cpus, since, unscheduled: message } = waits ?? {};
    assert.deepEqual([vm, cpus, since, message], ['vm', 40, '2026-05-04T10:00:00Z', NO_ROOM]);
    const from = listener.events.length;
    under.gone(pod);
    await listener.until(isRecords, from);
    assert.equal(pageOf(listener.events).pods.size, 0);
  });

  it('omits pods that share CPUs, and limits the length of a status', async () => {
    await start({ nodes: { n1: statusOf() } });
    const pod = waitingPod('vm', 4);
    const conditions = [{ type: 'PodScheduled', status: 'False', message: 'x'.repeat(100_000) }];
    const listener = await ready();
    under.see(withUid(podOf('500m'), 'uid-web', { namespace: 'east' }));
    under.see(pod, { phase: 'Pending', conditions });
    await listener.until(({ data }) => data.includes('"uid-vm"'));
    const page = pageOf(listener.events);
    assert.deepEqual([...page.pods.keys()], ['uid-vm']);
    assert.equal(page.pods.get('uid-vm')?.unscheduled?.length, 1024);
  });

  it('shows a guest as paused while KubeVirt reports it, and the target of a migration separately', async () => {
    await start({
      nodes: { n1: statusOf({ assignments: [compute('u1')] }), n2: statusOf({ assignments: [compute('u2')] }) },
    });
    for (const [uid, nodeName] of [['u1', 'n1'] as const, ['u2', 'n2'] as const]) {
      const pod = launcher({ namespace: 'east', name: 'fw', uid, count: 4, padding: 0 });
      const metadata = { ...pod.metadata, name: `virt-launcher-fw-${uid}xyz` };
      under.see({ ...pod, metadata, spec: { ...pod.spec, nodeName } }, { phase: 'Running' });
    }
    const vmi = (conditions: object[]) => ({
      metadata: { namespace: 'east', name: 'fw' },
      status: { nodeName: 'n1', phase: 'Running', conditions },
    });
    const listener = await ready();
    under.api.put('virtualmachineinstances', vmi([{ type: 'Paused', status: 'True', reason: 'PausedByUser' }]));
    await listener.until(({ data }) => data.includes('PausedByUser'));
    const [said, ...others] = [...pageOf(listener.events).running.values()];
    assert.deepEqual(said?.slice(0, 5), ['east/fw', 'n1', '', 'stopped', 'Paused']);
    assert.match(said?.[5] ?? '', /it is on n1 and does not run: PausedByUser/);
    assert.deepEqual(others, []);
    const from = listener.events.length;
    under.api.put('virtualmachineinstances', vmi([]));
    await listener.until(({ data }) => data.includes('["r",'), from);
    assert.equal(pageOf(listener.events).running.size, 0);
  });

  it('shows at once that an agent is silent if the extender says so, until its Lease changes', async () => {
    const deleted = { podUID: 'u', namespace: 'east', podName: 'virt-launcher-vm-x2x4z', container: 'compute' };
    await start({ nodes: { n1: statusOf({ assignments: [{ ...deleted, cpus: '1,9' }] }) } });
    const renewed = (renewTime: string) => under.lease('plumbline-agent-n1', { renewTime, leaseDurationSeconds: 3600 });
    renewed('2026-05-04T10:00:00.000000Z');
    const conditions = [{ type: AGENT_READY_CONDITION, status: 'False' }];
    under.api.put('nodes', { metadata: { name: 'n1' }, status: { conditions } } as never);
    const listener = await join();
    await listener.until(({ data }) => data.includes('["silent"]'));
    // A VM that was deleted since the agent's last report does not run, and no agent has confirmed that its CPUs are free.
    const page = pageOf(listener.events);
    assert.deepEqual(page.nodes.get('n1')?.owners[0]?.[0], 'east/virt-launcher-vm-x2x4z (gone)');
    assert.deepEqual(vmsOf(page.nodes.values(), []), []);
    renewed('2026-05-04T11:00:00.000000Z');
    await listener.until(({ data }) => data.includes('"problems":[]'), listener.events.length);
  });

  it('lists VMs without a launcher as waiting, with the reason and remedy of the table of states', async () => {
    await start({ nodes: { n1: statusOf() } });
    const denied = 'failed calling webhook "pods.plumbline.dev": no endpoints available';
    const spec = { runStrategy: 'Always' };
    const put = (kind: 'virtualmachines' | 'virtualmachineinstances', name: string, rest: object) => {
      const metadata = { namespace: 'east', name, creationTimestamp: '2026-05-04T10:00:00Z' };
      under.api.put(kind, { metadata, ...rest });
    };
    const failure = [{ type: 'Failure', status: 'True', reason: 'FailedCreate', message: denied }];
    const unsynchronized = [{ type: 'Synchronized', status: 'False', reason: 'FailedCreate', message: denied }];
    put('virtualmachines', 'no-instance', { spec, status: { created: false, conditions: failure } });
    put('virtualmachines', 'two-cores', { spec, status: { created: true } });
    put('virtualmachineinstances', 'two-cores', { status: { phase: 'Pending', conditions: unsynchronized } });
    put('virtualmachines', 'off', { spec: { runStrategy: 'Halted' }, status: { created: false } });
    put('virtualmachines', 'runs', { spec, status: { created: true } });
    put('virtualmachineinstances', 'runs', { status: { phase: 'Running', nodeName: 'n1' } });
    put('virtualmachines', 'forgotten', { spec });
    const listener = await ready();
    await listener.until(({ data }) => data.includes('two-cores'));
    const waiting = () => [...pageOf(listener.events).pods.values()].sort((a, b) => a.name.localeCompare(b.name));
    assert.deepEqual(
      waiting().map(({ key, vm, reason }) => [key, vm, reason]),
      [
        ['east/forgotten', 'forgotten', 'NoInstance'],
        ['east/no-instance', 'no-instance', 'WebhookUnavailable'],
        ['east/two-cores', 'two-cores', 'WebhookUnavailable'],
      ],
    );
    const [, , vm] = waiting();
    assert.equal(
      vm?.text,
      'the webhook does not answer (no endpoints available), so KubeVirt cannot create its launcher',
    );
    assert.deepEqual(vm?.remedies?.[0]?.slice(0, 2), ['repair the webhook', 'kubectl -n plumbline-system get pods']);
    const from = listener.events.length;
    under.see(waitingPod('two-cores', 4));
    await listener.until(({ data }) => data.includes('["p","east/two-cores"]'), from);
    assert.deepEqual(
      waiting().map(({ uid }) => uid),
      ['east/forgotten', 'east/no-instance', 'uid-two-cores'],
    );
  });

  it('names the Deployments of Plumbline without a ready replica', async () => {
    await start({});
    deployment('plumbline-scheduler', 1);
    deployment('plumbline-webhook');
    const listener = await ready();
    await listener.until(({ data }) => data.includes('"notReady":["plumbline-webhook"]'));
    assert.deepEqual(pageOf(listener.events).status?.notReady, ['plumbline-webhook']);
    deployment('plumbline-webhook', 1);
    await listener.until(({ data }) => data.includes('"notReady":[]'), listener.events.length);
  });

  it('lists what waits for Plumbline’s scheduler as broken while that does not answer, also a pod that waited before', async () => {
    const pinning = [{ podUID: 'm', namespace: 'east', podName: 'p', state: 'pinned' as const, vcpus: 2 }];
    await start({ nodes: { n1: statusOf({ pinning }) } });
    deployment('plumbline-scheduler', 1);
    const pod = waitingPod('vm', 4);
    const refused = unschedulable('0/3 nodes are available: 3 too few free CPUs.');
    under.see(pod, refused);
    under.see(maskedPod({ namespace: 'east', name: 'masked', uid: 'm' }, '1:2', 'n1'), { phase: 'Running' });
    const pausedSince = { status: 'True', reason: 'PausedByUser', lastTransitionTime: new Date().toISOString() };
    under.api.put('virtualmachineinstances', {
      metadata: { namespace: 'east', name: 'masked', annotations: { 'plumbline.dev/paused-start': 'waiting' } },
      status: { nodeName: 'n1', phase: 'Running', conditions: [{ type: 'Paused', ...pausedSince }] },
    } as never);
    const foreign = waitingPod('other', 4);
    under.see({ ...foreign, spec: { ...foreign.spec, schedulerName: 'default-scheduler' } }, refused);
    const listener = await join();
    const reasons = () =>
      [...pageOf(listener.events).pods.values()].map(({ uid, verdict, reason }) => [uid, verdict, reason]).sort();
    for (const uid of ['"uid-vm"', '"uid-other"']) await listener.until(({ data }) => data.includes(uid));
    const waits = ['uid-vm', 'waiting', 'NoNodeFits'];
    const other = ['uid-other', 'waiting', 'NoNodeFits'];
    assert.deepEqual(reasons(), [other, waits]);
    deployment('plumbline-scheduler', 0);
    await listener.until(({ data }) => data.includes('ExtenderAway'));
    assert.deepEqual(reasons(), [other, ['uid-vm', 'broken', 'ExtenderAway']]);
    const [paused] = [...pageOf(listener.events).running.values()];
    assert.deepEqual(paused?.slice(0, 5), ['east/masked', 'n1', '1:2', 'broken', 'ExtenderAway']);
    under.lease('plumbline-scheduler', { holderIdentity: '', renewTime: '2026-05-04T10:00:01.000000Z' });
    await listener.until(({ data }) => data.includes('SchedulerAway'));
    assert.deepEqual(reasons(), [other, ['uid-vm', 'broken', 'SchedulerAway']]);
    deployment('plumbline-scheduler', 1);
    under.lease('plumbline-scheduler', { holderIdentity: `${LEADER}_1`, renewTime: '2026-05-04T10:00:02.000000Z' });
    await listener.until(({ data }) => data.includes('NoNodeFits'), listener.events.length);
    assert.deepEqual(reasons(), [other, waits]);
  });

  it('shows everything else without KubeVirt or the permission to read VMIs, and names what is missing', async () => {
    for (const [status, without] of [[404, []] as const, [403, ['virtualmachineinstances']] as const]) {
      const error = new KubeError(status, 'x', `GET virtualmachineinstances: ${status}`);
      await start({ nodes: { n1: statusOf() }, refused: { virtualmachineinstances: error } });
      const listener = await join();
      await listener.until(isReady);
      const page = pageOf(listener.events);
      assert.deepEqual([page.status?.missing, page.status?.problem, page.nodes.size], [undefined, undefined, 1]);
      assert.deepEqual(page.status?.without, without);
      listener.close();
      await under.stop();
    }
    await start({});
  });

  it('reports an API server that fails, keeps showing the last data, and recovers by itself', async () => {
    await start({ invented: 20 });
    const listener = await ready();
    under.api.fail('nodes', new KubeError(0, 'Unreachable', 'GET /api/v1/nodes: connect ECONNREFUSED'));
    const failed = await listener.until(({ data }) => data.includes('"nodes: GET'));
    const { nodes, status } = pageOf(listener.events);
    assert.equal(nodes.size, 20);
    const age = Date.now() - Date.parse(status?.problem?.[0] ?? '');
    assert.ok(age >= 0 && age < 60_000, `${age} ms`);
    under.api.fail('nodes', undefined);
    const from = listener.events.indexOf(failed) + 1;
    await listener.until(({ event, data }) => event === 'message' && !data.includes('problem'), from);
    assert.equal(pageOf(listener.events).status?.problem, undefined);
  });

  it('needs less than 120 kB for 2,000 nodes with gzip', async function () {
    this.timeout(300_000);
    await start({ invented: 2000 });
    const listener = await ready({ 'accept-encoding': 'gzip' });
    const page = pageOf(listener.events);
    assert.equal(page.nodes.size, 2000);
    const shapes = new Set([...page.nodes.values()].map(({ shape }) => shape));
    assert.ok(shapes.size <= 3, `${shapes.size} shapes`);
    assert.ok(listener.bytes < 120_000, `${listener.bytes} bytes`);
  });
});
