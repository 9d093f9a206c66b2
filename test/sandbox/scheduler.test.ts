import assert from 'node:assert/strict';
import { EVENTS, NODES, PODS } from '../../sandbox/api-server/built-in-types.ts';
import type { KubeNode, KubePod } from '../../sandbox/objects.ts';
import { parseSchedulerConfiguration } from '../../sandbox/scheduler/extender.ts';
import { Scheduler } from '../../sandbox/scheduler/scheduler.ts';
import { until } from '../support/until.ts';
import { answering, type Listener, podOf, useApiServer } from './support.ts';

const DEVICE = 'devices.kubevirt.io/kvm';
type Args = { Pod: KubePod; Nodes: null | { items: KubeNode[] }; NodeNames: null | string[] };
const accept = (path: string, { NodeNames }: Args): unknown => (path === '/filter' ? { NodeNames } : []);

/** An extender whose answers each test sets, and the scheduler that calls it. */
function useScheduler() {
  const suite = useApiServer();
  const calls: { path: string; args: Args }[] = [];
  let answer: (path: string, args: Args) => unknown = accept;
  let listener: Listener;
  let scheduler: Scheduler | undefined;
  before(async () => {
    listener = await answering(({ path, body }) => {
      const args = body as Args;
      calls.push({ path, args });
      return answer(path, args);
    });
  });
  afterEach(async () => {
    const { client } = suite;
    await scheduler?.stop();
    for (const pod of client.list(PODS)) await client.delete(PODS, pod, { gracePeriodSeconds: 0 });
    for (const type of [NODES, EVENTS]) for (const object of client.list(type)) await client.delete(type, object);
    calls.length = 0;
    answer = accept;
  });
  after(() => listener.close());
  return {
    heard: calls,
    get client() {
      return suite.client;
    },
    say(next: typeof answer) {
      answer = next;
    },
    start(...verbs: string[]) {
      const [filterVerb, prioritizeVerb] = verbs;
      const urlPrefix = `http://127.0.0.1:${listener.port}`;
      const extender = { urlPrefix, filterVerb, prioritizeVerb, weight: 1, nodeCacheCapable: true };
      const configuration = parseSchedulerConfiguration({
        apiVersion: 'kubescheduler.config.k8s.io/v1',
        kind: 'KubeSchedulerConfiguration',
        profiles: [{ schedulerName: 'default-scheduler' }],
        extenders: verbs.length > 0 ? [extender] : [],
      });
      scheduler = new Scheduler({ client: suite.client, configuration });
      void scheduler.start();
    },
    node: (name: string, cpu = '4') =>
      suite.client.create(NODES, {
        apiVersion: 'v1',
        kind: 'Node',
        metadata: { name },
        status: { allocatable: { cpu, pods: '10', [DEVICE]: '10' }, conditions: [{ type: 'Ready', status: 'True' }] },
      }),
    pod: (name: string, cpu = '1', device = false) =>
      suite.client.create(PODS, podOf(name, { limits: { cpu, ...(device && { [DEVICE]: '1' }) } }) as KubePod),
    nodeOf: (name: string) => suite.client.get(PODS, 'default', name)?.spec.nodeName,
    conditionOf: (name: string) =>
      suite.client.get(PODS, 'default', name)?.status?.conditions?.find(({ type }) => type === 'PodScheduled'),
  };
}

describe('scheduler', () => {
  const at = useScheduler();

  it('places each pod where there is room, on the emptier node first', async () => {
    await at.node('n1', '2');
    await at.node('n2', '2');
    at.start();
    for (const name of ['a', 'b', 'c', 'd']) await at.pod(name);
    await until('all are placed', () => ['a', 'b', 'c', 'd'].every(at.nodeOf));
    assert.deepEqual(['a', 'b', 'c', 'd'].map(at.nodeOf), ['n1', 'n2', 'n1', 'n2']);
    assert.equal(at.conditionOf('a')?.status, 'True');
  });
  it('reports why a pod waits in a condition and an Event, and places it when there is room', async () => {
    await at.node('n1', '2');
    at.start();
    await at.pod('a', '2');
    await until('the first is placed', () => at.nodeOf('a'));
    await at.pod('b', '2');
    const preemption = 'preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod.';
    const text = `0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, ${preemption}`;
    await until('the condition', () => at.conditionOf('b')?.message === text);
    assert.deepEqual([at.conditionOf('b')?.status, at.conditionOf('b')?.reason], ['False', 'Unschedulable']);
    await until('the Event', () =>
      at.client.list(EVENTS).some((event) => event.reason === 'FailedScheduling' && event.message === text),
    );
    await at.client.delete(PODS, at.client.get(PODS, 'default', 'a')!, { gracePeriodSeconds: 0 });
    await until('the second is placed', () => at.nodeOf('b'));
  });
});

describe('scheduler and an extender', () => {
  const at = useScheduler();
  beforeEach(async () => {
    for (const name of ['n1', 'n2', 'n3']) await at.node(name);
  });

  it('is called by names', async () => {
    at.start('filter', 'prioritize');
    await at.pod('vm', '1', true);
    await until('it is placed', () => at.nodeOf('vm'));
    const calls = at.heard.map(({ path, args }) => [path, args.Pod.metadata.name, args.Nodes, args.NodeNames?.join()]);
    assert.deepEqual(calls[0], ['/filter', 'vm', null, 'n1,n2,n3']);
    assert.deepEqual(calls[1]?.slice(0, 2), ['/prioritize', 'vm']);
  });
  it('has its reasons shown to the user, with counts', async () => {
    at.say(() => ({
      NodeNames: [],
      FailedNodes: { n1: 'no whole cores', n2: 'no whole cores' },
      FailedAndUnresolvableNodes: { n3: 'DPU dead' },
    }));
    at.start('filter', 'prioritize');
    await at.pod('vm', '1', true);
    await until('the condition', () => at.conditionOf('vm')?.status === 'False');
    assert.equal(
      at.conditionOf('vm')?.message,
      '0/3 nodes are available: 1 DPU dead, 2 no whole cores. no new claims to deallocate, preemption: 0/3 nodes are available: 1 Preemption is not helpful for scheduling, 2 No preemption victims found for incoming pod.',
    );
  });

  it('may fail: a scheduling error, retried with backoff', async () => {
    let failing = true;
    at.say((path, args) => (path === '/filter' && failing ? 503 : accept(path, args)));
    at.start('filter', 'prioritize');
    await at.pod('vm', '1', true);
    await until('the condition', () => at.conditionOf('vm')?.reason === 'SchedulerError');
    assert.match(at.conditionOf('vm')?.message ?? '', /code 503/);
    failing = false;
    await until('it is placed', () => at.nodeOf('vm'));
  });
  it('costs only its scores if prioritize fails', async () => {
    at.say((path, args) => (path === '/filter' ? accept(path, args) : 500));
    at.start('filter', 'prioritize');
    await at.pod('vm', '1', true);
    await until('it is placed', () => at.nodeOf('vm'));
  });
});

describe('scheduler: a pod that an extender refused', () => {
  const at = useScheduler();
  const refuse = () => ({ NodeNames: [], FailedNodes: { n1: 'no' } });
  beforeEach(async () => {
    await at.node('n1');
    at.say(refuse);
  });
  const waits = async () => {
    await at.pod('vm', '1', true);
    await until('it is refused', () => at.conditionOf('vm')?.status === 'False');
    await until('its Event', () => at.client.list(EVENTS).some(({ reason }) => reason === 'FailedScheduling'));
    at.say(accept);
    at.heard.length = 0;
  };
  const editNode = (change: (node: KubeNode) => void, subresource?: 'status') =>
    at.client.edit(NODES, at.client.get(NODES, undefined, 'n1')!, change, subresource);

  const heartbeat = (node: KubeNode) => {
    for (const condition of node.status?.conditions ?? []) condition.lastHeartbeatTime = new Date().toISOString();
  };
  it('is not retried for Leases, custom resources and heartbeats', async () => {
    at.start('filter', 'prioritize');
    await waits();
    await editNode(heartbeat, 'status');
    await at.pod('other', '1', true);
    await until('a later pod is placed', () => at.nodeOf('other'));
    assert.equal(at.heard[0]?.args.Pod.metadata.name, 'other');
  });
  it('is retried when the recheck annotation changes', async () => {
    at.start('filter', 'prioritize');
    await waits();
    await editNode((node) => {
      node.metadata.annotations = { 'plumbline.dev/recheck': '1' };
    });
    await until('it is placed', () => at.nodeOf('vm'));
  });
});
