import assert from 'node:assert/strict';
import type { KubeClient } from '../../../kube/client.ts';
import { MAX_PINNING_MESSAGE_CHARACTERS, type NodeTopologyStatus } from '../../../kube/node-topology.ts';
import { readNode } from '../../../node-agent/kube-objects/lease.ts';
import { TopologyStore } from '../../../node-agent/report/topology-store.ts';
import { deniedByPolicy, isDenied } from '../../support/denied.ts';
import { eventually } from '../../support/eventually.ts';
import { onControlPlane, podOf } from '../control-plane-stage.ts';
import { topologyOf } from '../scheduler/stage.ts';
import { type InstalledAgents, installAgents } from './stage.ts';

const OWN = 'worker-1';
const OTHER = 'worker-2';
const TOPOLOGIES = '/apis/plumbline.dev/v1alpha1/nodetopologies';
const LEASES = '/apis/coordination.k8s.io/v1/namespaces/plumbline-system/leases';
const signal = new AbortController().signal;

const status = (more: Partial<NodeTopologyStatus> = {}): NodeTopologyStatus =>
  topologyOf({
    topologyManager: { policy: 'best-effort', scope: 'container', options: {} },
    memoryManager: { policy: 'Static', cells: [{ id: 0, memory: 2 ** 36, hugePages: { 'hugepages-1Gi': 2 ** 35 } }] },
    assignments: [{ podUID: 'u', namespace: 'ns', podName: 'vm', container: 'compute', cpus: '1,9' }],
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
  onControlPlane(this);
  let installed: InstalledAgents;
  let agent: KubeClient;

  before(async () => {
    installed = await installAgents([OWN, OTHER]);
    agent = await installed.agent(OWN);
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
    const store = new TopologyStore(agent, OWN);
    await store.sync(await readNode(agent, OWN, signal), signal);
    const vm = { podUID: 'u', namespace: 'ns', podName: 'vm', vcpus: 2 };
    const refused = {
      ...vm,
      state: 'refused',
      reason: 'Threads',
      message: 'x'.repeat(MAX_PINNING_MESSAGE_CHARACTERS),
    } as const;
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
    assert.deepEqual([...new Set(managedFields.map(({ manager }) => manager))], ['plumbline-node-agent', 'test']);
    assert.ok(JSON.stringify(managedFields).length < 4096, `${JSON.stringify(managedFields).length} bytes`);
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
      assert.ok(await isDenied(() => agent.create(EVENTS, object()), deniedByPolicy('plumbline-(node-agent|events)')));
    });
  }

  it('writes Events about pods of its own node and VM instances only', async () => {
    for (const node of [OWN, OTHER]) {
      await installed.plane.create(
        podOf({ name: `vm-on-${node}` }, { nodeName: node, automountServiceAccountToken: false }),
      );
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
    const query = { fieldManager: 'plumbline-node-agent', force: true };
    const object = { ...topology(OTHER), status: status() };
    const apply = () => agent.patch(`${TOPOLOGIES}/${OTHER}/status`, 'application/apply-patch+yaml', object, { query });
    assert.ok(await isDenied(apply, /agent of node worker-1 may not write the NodeTopology of worker-2/));
    assert.ok(await isDenied(() => agent.create(TOPOLOGIES, topology('worker-3')), /may not write the NodeTopology/));
    assert.ok(await isDenied(() => agent.create(LEASES, lease(`plumbline-agent-${OTHER}`)), /may not write the Lease/));
    await agent.create(LEASES, lease(`plumbline-agent-${OWN}`));
    const owner = { apiVersion: 'v1', kind: 'Node', name: OTHER, uid: 'u' };
    const stolen = { metadata: { ownerReferences: [owner] } };
    const patch = () => agent.patch(`${LEASES}/plumbline-agent-${OWN}`, 'application/merge-patch+json', stolen);
    assert.ok(await isDenied(patch, /that Node as their only owner/));
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
