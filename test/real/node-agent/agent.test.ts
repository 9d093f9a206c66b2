import assert from 'node:assert/strict';
import type { KubeClient } from '../../../kube/client.ts';
import { ApiEventRecorder, nodeTarget } from '../../../kube/events.ts';
import { MAX_PINNING_MESSAGE, type NodeTopologyStatus } from '../../../kube/node-topology.ts';
import { formatMask } from '../../../model/cpu-mask/mask.ts';
import { readNode } from '../../../node-agent/kube-objects/lease.ts';
import { createHeartbeat } from '../../../node-agent/report/heartbeat.ts';
import { createTopologyStore } from '../../../node-agent/report/topology-store.ts';
import { watchLaunchers } from '../../../node-agent/vm-pinning/launchers.ts';
import { testMetrics } from '../../node-agent/support.ts';
import { deniedByPolicy, isDenied } from '../../support/denied.ts';
import { eventually } from '../../support/eventually.ts';
import { recordingLogger } from '../../support/logger.ts';
import { needs } from '../../support/parts.ts';
import { type InstalledAgents, installAgents } from './installed.ts';

const OWN = 'worker-1';
const OTHER = 'worker-2';
const TOPOLOGIES = '/apis/plumbline.dev/v1alpha1/nodetopologies';
const LEASES = '/apis/coordination.k8s.io/v1/namespaces/plumbline-system/leases';
const signal = new AbortController().signal;
const DRY = { query: { dryRun: 'All' } };

const status = (more: Partial<NodeTopologyStatus> = {}): NodeTopologyStatus => ({
  kubeletVersion: 'v1.36.2',
  cells: [{ id: 0, cpus: '0-7' }],
  cores: ['0,4', '1,5', '2,6', '3,7'],
  sockets: [{ id: 0, cpus: '0-7' }],
  reserved: '0,4',
  cpuManager: { policy: 'static', options: { 'full-pcpus-only': 'true' } },
  topologyManager: { policy: 'best-effort', scope: 'container', options: {} },
  memoryManager: { policy: 'Static', cells: [{ id: 0, memory: 2 ** 36, hugePages: { 'hugepages-1Gi': 2 ** 35 } }] },
  distances: { 0: [10] },
  assignments: [{ podUID: 'u', namespace: 'ns', podName: 'vm', container: 'compute', cpus: '1,5' }],
  physnets: [{ name: 'physnet0', cells: '0' }],
  conditions: [
    {
      type: 'NetworksKnown',
      status: 'True',
      reason: 'AsExpected',
      message: '',
      lastTransitionTime: '2026-01-01T00:00:00Z',
    },
  ],
  ...more,
});

describe('an agent and a real API server', function () {
  needs('controlPlane');
  needs('kubectl');
  this.timeout(300_000);
  let installed: InstalledAgents;
  let agent: KubeClient;

  before(async () => {
    installed = await installAgents([OWN, OTHER]);
    agent = await installed.agent(OWN);
    // A policy holds from a moment after it is made.
    await eventually(
      () => isDenied(() => agent.create(LEASES, lease(`plumbline-agent-${OTHER}`), DRY), /may not write the Lease/),
      'the policy holds',
      30,
    );
  });
  after(async () => installed?.stop());

  const lease = (name: string, more: object = {}) => ({
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name, namespace: 'plumbline-system' },
    spec: { holderIdentity: 'x', leaseDurationSeconds: 40, ...more },
  });
  const topology = (name: string) => ({
    apiVersion: 'plumbline.dev/v1alpha1',
    kind: 'NodeTopology',
    metadata: { name },
  });

  it('applies the whole report and removes outdated fields', async () => {
    const store = createTopologyStore(agent, OWN);
    await store.sync(await readNode(agent, OWN, signal), signal);
    const vm = { podUID: 'u', namespace: 'ns', podName: 'vm', vcpus: 2 };
    const refused = { ...vm, state: 'refused', reason: 'Threads', message: 'x'.repeat(MAX_PINNING_MESSAGE) } as const;
    const first = status({ pmdCPUs: '2,6', tunnel: { cells: '0' }, pinning: [{ ...vm, state: 'pinned' }, refused] });
    assert.equal(store.changesTo(first).length > 0, true);
    await store.write(first, signal);
    assert.deepEqual(store.published, first);
    assert.equal(store.changesTo(first).length > 0, false, 'nothing new');
    assert.equal(store.changesTo(status({ assignments: [] })).length > 0, true);
    await store.write(status({ assignments: [] }), signal);
    const topology = (await agent.get(`${TOPOLOGIES}/${OWN}`)) as {
      status: unknown;
      metadata: { ownerReferences: { kind: string; name: string }[]; managedFields: { manager: string }[] };
    };
    assert.deepEqual(topology.status, status({ assignments: [] }));
    const [owner] = topology.metadata.ownerReferences;
    assert.deepEqual([owner?.kind, owner?.name], ['Node', OWN]);
    const { managedFields } = topology.metadata;
    assert.deepEqual(
      [...new Set(managedFields.map(({ manager }) => manager))],
      ['plumbline-node-agent', 'plumbline-test'],
    );
    assert.ok(JSON.stringify(managedFields).length < 4096, `${JSON.stringify(managedFields).length} bytes`);
  });

  it('corrects changes that others made to the report with its next write', async () => {
    const store = createTopologyStore(agent, OWN);
    await store.sync(await readNode(agent, OWN, signal), signal);
    const forged = { status: { reserved: '0-7', pmdCPUs: '7' } };
    await installed.plane.client.patch(`${TOPOLOGIES}/${OWN}/status`, 'application/merge-patch+json', forged);
    await store.sync(await readNode(agent, OWN, signal), signal);
    assert.equal(store.changesTo(status({ assignments: [] })).length > 0, true, 'it is seen');
    await store.write(status({ reserved: '0,4', isolated: '3,7' }), signal);
    assert.deepEqual(store.published, status({ reserved: '0,4', isolated: '3,7' }));
  });

  it('may not write values that the schema does not allow', async () => {
    const wrong = { ...topology(OWN), status: { ...status(), cells: [{ id: -1, cpus: '0' }] } };
    const query = { fieldManager: 'plumbline-node-agent', force: true };
    await assert.rejects(
      agent.patch(`${TOPOLOGIES}/${OWN}/status`, 'application/apply-patch+yaml', wrong, { query }),
      /cells\[0\].id/,
    );
  });

  it('creates and renews its heartbeat Lease', async () => {
    const stop = new AbortController();
    const { log, lines } = recordingLogger();
    let made = 0;
    const onCreated = () => made++;
    const deps = { client: agent, nodeName: OWN, log, metrics: testMetrics(), wallClock: Date.now, onCreated };
    const done = createHeartbeat(deps).run(stop.signal);
    await eventually(() => made === 1, JSON.stringify(lines));
    stop.abort();
    await done;
  });

  it('follows the launchers of its own node and their masks', async () => {
    const { plane } = installed;
    const pods = '/api/v1/namespaces/default/pods';
    await plane.create({
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: { name: 'default', namespace: 'default' },
    });
    const owner = {
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachineInstance',
      name: 'vm',
      uid: 'vmi',
      controller: true,
    };
    const launcher = (name: string, nodeName: string, label = 'virt-launcher') => ({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: {
        name,
        namespace: 'default',
        labels: { 'kubevirt.io': label },
        annotations: { 'plumbline.dev/cpu-mask': '1:3' },
        ownerReferences: [owner],
      },
      spec: { nodeName, automountServiceAccountToken: false, containers: [{ name: 'compute', image: 'launcher' }] },
    });
    const stop = new AbortController();
    const { log } = recordingLogger();
    let changes = 0;
    const watched = watchLaunchers({ client: agent, nodeName: OWN, log, onChange: () => changes++ });
    const done = watched.run(stop.signal);
    await watched.whenSynced;
    for (const pod of [launcher('own', OWN), launcher('other', OTHER), launcher('hp', OWN, 'hotplug-disk')]) {
      await plane.create(pod);
    }
    const containerStatuses = [
      { name: 'compute', containerID: 'containerd://abc', image: '', imageID: '', ready: true, restartCount: 0 },
    ];
    await plane.client.patch(`${pods}/own/status`, 'application/merge-patch+json', { status: { containerStatuses } });
    await eventually(() => watched.items.get('default/own')?.containerId === 'abc', 'the container');
    assert.deepEqual([...watched.items.keys()], ['default/own']);
    const item = watched.items.get('default/own');
    assert.deepEqual([item?.vmi, item?.podName, item?.problem], [{ name: 'vm', uid: 'vmi' }, 'own', undefined]);
    assert.equal(formatMask(item!.maskRequest!.mask), '1:3');
    const annotations = { 'plumbline.dev/cpu-mask': '0' };
    await plane.client.patch(`${pods}/own`, 'application/merge-patch+json', { metadata: { annotations } });
    await eventually(
      () => String(watched.items.get('default/own')?.maskRequest?.mask.entries) === '0',
      'the other mask',
    );
    await plane.client.delete(`${pods}/own?gracePeriodSeconds=0`);
    await eventually(() => watched.items.get('default/own') === undefined, 'it is gone');
    assert.ok(changes >= 4);
    stop.abort();
    await done;
  });

  const EVENTS = '/api/v1/namespaces/default/events';
  const COMPONENT = 'plumbline-node-agent';
  let count = 0;
  const event = (more: object = {}) => ({
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: `e-${++count}`, namespace: 'default', labels: { 'plumbline.dev/component': COMPONENT } },
    involvedObject: { apiVersion: 'v1', kind: 'Node', name: OWN, uid: OWN },
    source: { component: COMPONENT, host: OWN },
    reportingComponent: COMPONENT,
    reason: 'OvsAffinityEnabled',
    type: 'Normal',
    message: 'x',
    ...more,
  });
  const about = (kind: string, name: string) => ({
    involvedObject: { apiVersion: 'v1', kind, name, ...(kind !== 'Node' && { namespace: 'default' }) },
  });

  it('its recorder writes Events about its node, and counts them', async () => {
    const { log, lines } = recordingLogger();
    const recorder = new ApiEventRecorder({ client: agent, component: COMPONENT, host: OWN, log, now: () => 0 });
    for (const reason of ['OvsAffinityEnabled', 'OvsAffinityDisabled', 'OvsAffinityEnabled']) {
      recorder.record(nodeTarget(OWN), { type: 'Normal', reason, message: 'counted' });
      await recorder.flush();
    }
    assert.deepEqual(lines, []);
    const { items } = (await installed.plane.client.get(EVENTS)) as { items: { message?: string; count?: number }[] };
    const counts = items.filter(({ message }) => message === 'counted').map(({ count }) => count);
    assert.deepEqual(counts.sort(), [1, 2]);
  });

  const foreign: [string, object, object][] = [
    ['of another node', { source: { component: COMPONENT, host: OTHER } }, { source: { host: OWN } }],
    ['of another component', { source: { component: 'other', host: OWN } }, { source: { component: COMPONENT } }],
    ['without a source', { source: undefined }, { source: { component: COMPONENT, host: OWN } }],
    ['with another object', {}, { involvedObject: { kind: 'Pod', name: 'x', uid: '' } }],
    ['with another reason', {}, { reason: 'OvsAffinityDisabled' }],
  ];
  for (const [what, before, change] of foreign) {
    it(`changes no Event ${what}`, async () => {
      const object = event(before);
      await installed.plane.client.create(EVENTS, object);
      const patch = () => agent.patch(`${EVENTS}/${object.metadata.name}`, 'application/merge-patch+json', change);
      assert.ok(await isDenied(patch, deniedByPolicy('plumbline-node-agent')));
    });
  }

  const forged: [string, () => object][] = [
    ['with another node as the source', () => event({ source: { component: COMPONENT, host: OTHER } })],
    ['without a source', () => event({ source: undefined })],
    ['about another node', () => event(about('Node', OTHER))],
    ['about a DaemonSet', () => event(about('DaemonSet', OWN))],
    ['in the name of the extender', () => event({ source: { component: 'plumbline-scheduler-plugin', host: OWN } })],
    ['reported by the extender', () => event({ reportingComponent: 'plumbline-scheduler-plugin' })],
    ['without its label', () => event({ metadata: { name: 'unlabelled', namespace: 'default' } })],
  ];
  for (const [what, object] of forged) {
    it(`writes no Event ${what}`, async () => {
      assert.ok(await isDenied(() => agent.create(EVENTS, object()), deniedByPolicy('plumbline-node-agent')));
    });
  }

  it('writes Events about pods of its own node and VM instances only', async () => {
    for (const node of [OWN, OTHER]) {
      await installed.plane.create({
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: `vm-on-${node}`, namespace: 'default' },
        spec: { nodeName: node, automountServiceAccountToken: false, containers: [{ name: 'compute', image: 'x' }] },
      });
    }
    await eventually(
      () =>
        isDenied(
          () => agent.create(EVENTS, event(about('Pod', `vm-on-${OTHER}`))),
          deniedByPolicy('plumbline-node-agent-events'),
        ),
      'a pod of another node',
    );
    await agent.create(EVENTS, event(about('Pod', `vm-on-${OWN}`)));
    await agent.create(EVENTS, event(about('VirtualMachineInstance', 'vm')));
  });

  it('may not write another node’s report, Lease or owner reference', async () => {
    await installed.plane.create(topology(OTHER));
    const apply = (name: string) =>
      agent.patch(
        `${TOPOLOGIES}/${name}/status`,
        'application/apply-patch+yaml',
        { ...topology(name), status: status() },
        {
          query: { fieldManager: 'plumbline-node-agent', force: true },
        },
      );
    assert.ok(await isDenied(() => apply(OTHER), /agent of node worker-1 may not write the NodeTopology of worker-2/));
    assert.ok(await isDenied(() => agent.create(TOPOLOGIES, topology('worker-3')), /may not write the NodeTopology/));
    assert.ok(await isDenied(() => agent.create(LEASES, lease(`plumbline-agent-${OTHER}`)), /may not write the Lease/));
    const owner = { apiVersion: 'v1', kind: 'Node', name: OTHER, uid: 'u' };
    const stolen = { metadata: { ownerReferences: [owner] } };
    const patch = () => agent.patch(`${LEASES}/plumbline-agent-${OWN}`, 'application/merge-patch+json', stolen);
    assert.ok(await isDenied(patch, /that Node as their only owner/));
  });

  it('has exactly the listed permissions', async () => {
    const review = { apiVersion: 'authorization.k8s.io/v1', kind: 'SelfSubjectRulesReview' };
    const allowed = async (namespace: string) => {
      const body = { ...review, spec: { namespace } };
      const { status } = (await agent.create('/apis/authorization.k8s.io/v1/selfsubjectrulesreviews', body)) as {
        status: { resourceRules: { verbs: string[]; resources: string[] }[] };
      };
      // What everybody may: ask who they are and what they may do.
      const own = status.resourceRules.filter(
        ({ resources }) => !resources.every((one) => one.startsWith('selfsubject')),
      );
      return own.map(({ verbs, resources }) => `${resources.sort()}: ${verbs.sort()}`).sort();
    };
    const everywhere = [
      'events: create,patch',
      'nodes/configz: get',
      'nodes: get',
      'nodetopologies/status: patch',
      'nodetopologies: create,get',
      'pods: get,list,watch',
    ];
    assert.deepEqual(await allowed('default'), everywhere);
    assert.deepEqual(await allowed('plumbline-system'), ['leases: create,patch', ...everywhere].sort());
  });

  it('may only get nodes, and may list and watch only pods', async () => {
    const node = `/api/v1/nodes/${OWN}`;
    await agent.get(node);
    const label = { metadata: { labels: { a: 'b' } } };
    for (const act of [
      () => agent.patch(node, 'application/merge-patch+json', label),
      () => agent.patch(`${node}/status`, 'application/merge-patch+json', { status: {} }),
      () => agent.get('/api/v1/nodes'),
      () => agent.get(TOPOLOGIES),
      () => agent.get(`${node}/proxy/configz`),
      () => agent.delete(`${TOPOLOGIES}/${OWN}`),
    ]) {
      assert.ok(await isDenied(act, /cannot/));
    }
  });

  it('may not write anything with a token that names no node', async () => {
    const unbound = await installed.unbound();
    assert.ok(await isDenied(() => unbound.create(TOPOLOGIES, topology('worker-3')), /names no node/));
  });
});
