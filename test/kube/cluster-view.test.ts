import assert from 'node:assert/strict';
import { definitionFacts, definitionsPath } from '../../kube/cluster-view/definitions.ts';
import { hostOfHolder, Leader, nodeLease } from '../../kube/cluster-view/leases.ts';
import { NodeShapes } from '../../kube/cluster-view/node-topologies.ts';
import { factsOfNode, writtenConditions } from '../../kube/cluster-view/nodes.ts';
import { isForgedMirror, kubeletUid } from '../../kube/cluster-view/pods.ts';
import { createResourceSliceReflector, RESOURCE_SLICES_PATH } from '../../kube/cluster-view/resource-slices.ts';
import { SilentAgents } from '../../kube/cluster-view/silent-agents.ts';
import { instancesPath, isOfMachine, pausedCondition } from '../../kube/cluster-view/vmis.ts';
import { lease as leaseSchema, networkAttachmentDefinition } from '../../kube/resources.ts';
import { owned, statusOf } from '../scheduler-plugin/extender-fixture.ts';
import { silent } from '../support/logger.ts';
import { scriptedLists, settle } from './scripted-api-stand-in.ts';

describe('a network definition', () => {
  const factsOf = (config?: object) => {
    const spec = config && { config: JSON.stringify(config) };
    return definitionFacts(networkAttachmentDefinition.parse({ metadata: { name: 'a', namespace: 'tenant' }, spec }));
  };

  it('is reduced to the fields of its first plugin that are there', () => {
    const { main } = factsOf({ type: 'sriov', vlan: 5, other: 'x' });
    assert.deepEqual(typeof main === 'string' ? main : Object.values(main).includes(undefined), false);
    assert.equal(typeof main === 'string' ? main : main.type, 'sriov');
  });

  it('says why it has no plugin', () => assert.equal(typeof factsOf().main, 'string'));

  it('is in the list of its namespace', () => {
    assert.equal(definitionsPath(), '/apis/k8s.cni.cncf.io/v1/network-attachment-definitions');
    assert.equal(definitionsPath('a/b'), '/apis/k8s.cni.cncf.io/v1/namespaces/a%2Fb/network-attachment-definitions');
  });
});

const election = (renewTime: string, holder = 'pod-1_0f3a', duration = 8) => ({ holder, renewTime, duration });

describe('the leader of an election', () => {
  it('is known from its first reading on, for the duration that the Lease had at its last renewal', () => {
    const leader = new Leader();
    assert.equal(leader.holder, undefined);
    assert.equal(leader.hasExpired(0), true, 'there is no Lease');
    leader.leaseChanged(election('a'), 100);
    assert.deepEqual([leader.holder, leader.hasExpired(107.9), leader.hasExpired(108)], ['pod-1_0f3a', false, true]);
    leader.leaseChanged(election('b'), 107);
    assert.deepEqual([leader.hasExpired(114.9), leader.hasExpired(115)], [false, true]);
    leader.leaseChanged(election('b', undefined, 60), 108);
    assert.deepEqual([leader.silentSeconds(114), leader.hasExpired(115)], [7, true], 'a longer one, without a renewal');
    leader.leaseChanged(election('b', 'pod-2_0f3a'), 120);
    assert.equal(leader.hasExpired(120), false, 'another holder');
    leader.leaseChanged(undefined, 121);
    assert.equal(leader.holder, undefined);
  });

  it('is not silent as long as the watch is', () => {
    const leader = new Leader();
    leader.leaseChanged(election('a'), 100);
    assert.deepEqual([leader.hasExpired(200, 107.9), leader.hasExpired(200, 108)], [false, true]);
  });

  it('has the host name of its identity', () => {
    assert.deepEqual(['pod-1_0f3a', 'pod_1_0f3a', 'pod-1', ''].map(hostOfHolder), ['pod-1', 'pod_1', '', '']);
  });
});

describe('the Lease of a node', () => {
  it('has the prefix and the name of the node', () => {
    const lease = (name?: string) =>
      leaseSchema.parse({ metadata: { name }, spec: { renewTime: 'a', leaseDurationSeconds: 40 } });
    assert.deepEqual(nodeLease(lease('agent-n1'), 'agent-'), { node: 'n1', renewTime: 'a', duration: 40 });
    assert.deepEqual([nodeLease(lease('dpu-n1'), 'agent-'), nodeLease(lease(), 'agent-')], [undefined, undefined]);
  });
});

describe('the shapes of nodes', () => {
  it('are shared by nodes that differ only in pods, conditions and refusals', () => {
    const shapes = new NodeShapes(() => ({ prepared: true }));
    const one = shapes.take(statusOf());
    const more = {
      assignments: [owned('x', '1')],
      conditions: [],
      pinning: [],
      refusals: [{ namespace: 'a', podName: 'b', container: 'c', message: 'no' }],
    };
    assert.equal(shapes.take(statusOf(more)), one);
    const other = shapes.take(statusOf({ reserved: '0-1,8-9' }));
    assert.deepEqual([one.id, other.id], [1, 2]);
  });

  it('are forgotten when no node uses them', () => {
    const shapes = new NodeShapes(() => ({ prepared: true }));
    const [one] = [shapes.take(statusOf()), shapes.take(statusOf())];
    shapes.release(one);
    assert.equal(shapes.take(statusOf()), one, 'one node is left');
    shapes.release(one);
    shapes.release(one);
    assert.notEqual(shapes.take(statusOf()), one);
  });
});

describe('the machine of a Node', () => {
  const of = (cpu?: string, labels?: Record<string, string>) =>
    factsOfNode({
      metadata: labels === undefined ? {} : { labels },
      ...(cpu !== undefined && { status: { capacity: { cpu } } }),
    });

  it('has its CPUs and its architecture', () => {
    const capacity = new Map();
    assert.deepEqual(of('16', { 'kubernetes.io/arch': 'arm64' }), { cpus: 16, capacity, arch: 'arm64' });
    assert.deepEqual(of('8000m'), { cpus: 8, capacity, arch: undefined });
  });

  it('has the architecture of its kubelet if it has no label', () => {
    const status = { nodeInfo: { architecture: 'amd64' } };
    assert.equal(factsOfNode({ metadata: {}, status }).arch, 'amd64');
    assert.equal(factsOfNode({ metadata: { labels: { 'kubernetes.io/arch': 'arm64' } }, status }).arch, 'arm64');
  });

  it('has its devices in any notation, and nothing else of its capacity', () => {
    const amounts = { cpu: '8', memory: '64Gi', pods: '110', 'hugepages-1Gi': '0' };
    const devices = { 'a.example/vf': '8', 'a.example/fuse': '2k', 'a.example/odd': 'many', 'a.example/none': '0' };
    assert.deepEqual(
      factsOfNode({ metadata: {}, status: { capacity: { ...amounts, ...devices } } }).capacity,
      new Map(Object.entries({ 'a.example/vf': 8, 'a.example/fuse': 2000, 'a.example/odd': 0, 'a.example/none': 0 })),
    );
    assert.equal(factsOfNode({ metadata: {} }).capacity, undefined, 'unknown');
  });

  it('has no number of CPUs if the capacity is missing, fractional or unreadable', () => {
    for (const cpu of [undefined, '1500m', 'many', '']) assert.equal(of(cpu).cpus, undefined, String(cpu));
  });
});

it('the conditions that the extender writes are read by their types', () => {
  const conditions = [
    { type: 'Ready', status: 'True' },
    { type: 'plumbline.dev/DPUReady', status: 'False' },
    { type: 'plumbline.dev/AgentReady', status: 'Unknown' },
  ];
  const node = { metadata: {}, status: { conditions } };
  assert.deepEqual(writtenConditions(node), { agentReady: 'Unknown', dpuReady: 'False' });
  assert.deepEqual(writtenConditions({ metadata: {} }), { agentReady: undefined, dpuReady: undefined });
});

const HASH = '0123456789abcdef'.repeat(2);

describe('the uid of a pod in its kubelet', () => {
  const mirror = { 'kubernetes.io/config.mirror': '' };
  const staticUid = (hash: string) => ({ 'kubernetes.io/config.hash': hash });
  const CASES: readonly [label: string, annotations: Readonly<Record<string, string>> | undefined, uid: string][] = [
    ['is its own', undefined, 'own'],
    ['of a mirror is that of its static pod', { ...mirror, ...staticUid(HASH) }, HASH],
    ['of a pod that is no mirror is its own', staticUid(HASH), 'own'],
    ['never is that of another pod', { ...mirror, ...staticUid('x') }, 'own'],
    ['of a mirror without one is its own', mirror, 'own'],
  ];
  for (const [label, annotations, uid] of CASES) {
    it(label, () => assert.equal(kubeletUid({ uid: 'own', annotations }), uid));
  }
});

it('a mirror pod is real only if the Node on which it is owns it', () => {
  const pod = (nodeName: string | undefined, ...owners: [kind: string, name: string][]) => ({
    metadata: {
      annotations: { 'kubernetes.io/config.mirror': '' },
      ownerReferences: owners.map(([kind, name]) => ({ apiVersion: 'v1', kind, name, uid: name })),
    },
    spec: { nodeName, containers: [] },
  });
  assert.equal(isForgedMirror(pod('n1', ['Pod', 'n1'], ['Node', 'n1'])), false);
  for (const forged of [pod('n1'), pod('n1', ['Node', 'n2']), pod('n1', ['Pod', 'n1']), pod(undefined, ['Node', 'n1'])])
    assert.equal(isForgedMirror(forged), true);
  assert.equal(isForgedMirror({ metadata: {}, spec: { nodeName: 'n1', containers: [] } }), false);
});

describe('the slices of the CPU driver of DRA', () => {
  it('mark the nodes with at least one of them', async () => {
    const lists = scriptedLists({ [RESOURCE_SLICES_PATH]: [] });
    const marked = new Set<string>();
    const slices = createResourceSliceReflector(
      { client: lists.client, log: silent, nowSeconds: () => 0 },
      (node, isMarked) => (isMarked ? marked.add(node) : marked.delete(node)),
    );
    const running = new AbortController();
    void slices.run(running.signal);
    await settle();
    const send = (type: 'ADDED' | 'MODIFIED' | 'DELETED', name: string, driver: string, nodeName?: string | null) =>
      lists.send(RESOURCE_SLICES_PATH, type, { metadata: { name }, spec: { driver, nodeName } });
    await send('ADDED', 'gpu', 'gpu.example.com', 'n2');
    await send('ADDED', 'everywhere', 'dra.cpu', null);
    await send('ADDED', 'nowhere', 'dra.cpu');
    for (const name of ['a', 'b']) await send('ADDED', name, 'dra.cpu', 'n1');
    assert.deepEqual([...marked], ['n1']);
    await send('MODIFIED', 'a', 'dra.cpu', 'n1');
    await send('DELETED', 'a', 'dra.cpu', 'n1');
    assert.deepEqual([...marked], ['n1'], 'it has another slice');
    await send('MODIFIED', 'b', 'dra.cpu', 'n2');
    assert.deepEqual([...marked], ['n2'], 'the slice moved');
    await send('DELETED', 'b', 'dra.cpu', 'n2');
    assert.deepEqual([...marked], []);
    running.abort();
  });
});

const NODES = new Map([['n1', {}]]);
const lease = (renewTime: string, duration = 40) => ({ node: 'n1', renewTime, duration });

function stage(reported: readonly string[] = []) {
  const clock = { now: 0 };
  const events: string[] = [];
  const agents = new SilentAgents({
    onSilent: (node, isSilent) => void events.push(`${node} ${isSilent ? 'silent' : 'back'}`),
    onRenewed: (node, hasRenewed) => void events.push(`${node} ${hasRenewed ? 'renewed' : 'forgotten'}`),
    nowSeconds: () => clock.now,
  });
  return {
    agents,
    renew: (...renewal: Parameters<typeof lease>) =>
      agents.leaseChanged({ before: undefined, after: lease(...renewal) }, NODES),
    /** What has changed since the last check, with one at that second. @param lastHeard of the watch */
    async check(now: number, lastHeard = now): Promise<string> {
      clock.now = now;
      // The check of a run that ends while it waits.
      const running = new AbortController();
      const run = agents.run({ lastHeard }, running.signal, () => reported);
      running.abort();
      await run;
      return events.splice(0).join();
    },
  };
}

describe('the agent of a node', () => {
  it('is silent after the duration of its Lease, if the watch was heard since, until a renewal', async () => {
    const { renew, check, agents } = stage();
    renew('a');
    assert.equal(await check(39), '', 'the first reading proves nothing');
    assert.equal(await check(40, 39), '', 'the watch is silent, too');
    assert.equal(await check(40), 'n1 silent');
    assert.deepEqual([...agents.nodes], ['n1']);
    renew('b');
    assert.equal(await check(41), 'n1 renewed,n1 back');
    renew('b', 20);
    assert.equal(await check(59), '', 'a shorter duration of the same renewal ends it earlier');
    assert.equal(await check(60), 'n1 silent');
  });

  it('is silent if the extender says so, until a renewal is observed', async () => {
    const { renew, check } = stage(['n1']);
    assert.equal(await check(0), 'n1 silent');
    renew('a');
    assert.equal(await check(1), '');
    renew('b');
    assert.equal(await check(2), 'n1 renewed,n1 back');
  });

  it('is forgotten when its Lease and its Node are both deleted', async () => {
    const gone = { before: lease('a'), after: undefined };
    const first = stage();
    first.renew('a');
    first.agents.leaseChanged(gone, NODES);
    assert.equal(await first.check(50), 'n1 silent');
    first.agents.nodeDeleted('n1');
    assert.equal(await first.check(51), 'n1 forgotten,n1 back');
    const last = stage();
    last.renew('a');
    last.agents.nodeDeleted('n1');
    assert.equal(await last.check(50), 'n1 silent');
    last.agents.leaseChanged(gone, new Map());
    assert.equal(await last.check(51), 'n1 forgotten,n1 back');
  });
});

describe('an instance', () => {
  it('is in the list of its namespace', () => {
    assert.equal(instancesPath(), '/apis/kubevirt.io/v1/virtualmachineinstances');
    assert.equal(instancesPath('a/b'), '/apis/kubevirt.io/v1/namespaces/a%2Fb/virtualmachineinstances');
  });

  it('is paused only while its condition is True', () => {
    const condition = (status: string) => ({ type: 'Paused', status });
    const paused = (...conditions: object[]) => pausedCondition({ status: { conditions: conditions as never } });
    assert.deepEqual(paused({ type: 'Ready', status: 'True' }, condition('True')), condition('True'));
    assert.deepEqual([paused(condition('False')), pausedCondition({})], [undefined, undefined]);
  });

  it('belongs to a VM that owns it', () => {
    const owner = (kind: string) => ({ apiVersion: 'kubevirt.io/v1', kind, name: 'a', uid: 'a' });
    const replicaSet = owner('VirtualMachineInstanceReplicaSet');
    assert.equal(isOfMachine({ ownerReferences: [replicaSet, owner('VirtualMachine')] }), true);
    assert.deepEqual([isOfMachine({ ownerReferences: [replicaSet] }), isOfMachine({})], [false, false]);
  });
});
