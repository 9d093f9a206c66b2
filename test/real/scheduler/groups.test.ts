import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { onControlPlane } from '../control-plane-stage.ts';
import { type Replica, type Stage, startStage, topologyOf } from './stage.ts';

const GROUPS = '/apis/scheduling.k8s.io/v1alpha2/namespaces/default/podgroups';
const GATES = '--feature-gates=GenericWorkload=true,GangScheduling=true';
const NODES = 8;
const CPUS = '6';

/**
 * kube-scheduler filters all pods of a group, one after the other, before it binds the first. What the extender has
 * answered for one must count for the next, and must end if the group does not fit.
 */
describe('groups of pods under a real kube-scheduler with GangScheduling', function () {
  onControlPlane(this);
  let stage: Stage;
  let replica: Replica;

  before(async () => {
    stage = await startStage({ apiServerArgs: [GATES, '--runtime-config=scheduling.k8s.io/v1alpha2=true'] });
    const nodes = Array.from({ length: NODES }, (_, i) => ({ name: `n${i}`, topology: topologyOf() }));
    await stage.addNodes(nodes);
    replica = await stage.startReplica();
    for (const name of ['default-scheduler', 'second-profile']) await stage.startScheduler({ name, flags: [GATES] });
  });
  after(() => stage?.stop());
  afterEach(async () => {
    for (const { metadata } of await stage.pods())
      await stage.client.delete(`/api/v1/namespaces/default/pods/${metadata.name}`);
  });

  async function createGroup(name: string, size: number, schedulers: readonly string[]): Promise<string[]> {
    await stage.client.create(GROUPS, {
      apiVersion: 'scheduling.k8s.io/v1alpha2',
      kind: 'PodGroup',
      metadata: { name },
      spec: { schedulingPolicy: { gang: { minCount: size } } },
    });
    const names = Array.from({ length: size }, (_, i) => `${name}-${i}`);
    for (const [i, pod] of names.entries()) {
      const schedulerName = schedulers[i % schedulers.length] ?? '';
      const more = { schedulerName, schedulingGroup: { podGroupName: name } };
      await stage.addPod({ name: pod, cpu: CPUS, more });
    }
    return names;
  }
  const placed = async () =>
    (await stage.pods()).flatMap(({ spec }) => (spec.nodeName === undefined ? [] : [spec.nodeName]));
  const mostOnANode = (nodes: readonly string[]) =>
    Math.max(...nodes.map((node) => nodes.filter((other) => other === node).length));

  for (const size of [4, 16]) {
    it(`starts all ${size} VMs of one that fits, and promises no CPU twice`, async () => {
      const names = await createGroup(`fits-${size}`, size, ['default-scheduler']);
      for (const name of names) await stage.bound(name);
      assert.ok(mostOnANode(await placed()) <= 2, (await placed()).join());
      assert.ok((await replica.metric('plumbline_extender_calls_total', { verb: 'filter' })) >= size);
    });
  }

  it('starts two groups of two profiles at once, and promises no CPU twice', async () => {
    const [first, second] = await Promise.all([
      createGroup('first', 8, ['default-scheduler']),
      createGroup('second', 8, ['second-profile']),
    ]);
    for (const name of [...first, ...second]) await stage.bound(name);
    assert.ok(mostOnANode(await placed()) <= 2, (await placed()).join());
  });

  it('leaves no reservation behind for one that does not fit: others have the room', async () => {
    const names = await createGroup('too-many', 17, ['default-scheduler']);
    await delay(5000);
    assert.deepEqual(await placed(), [], 'none is bound');
    for (const name of names) await stage.client.delete(`/api/v1/namespaces/default/pods/${name}`);
    const alone = Array.from({ length: 16 }, (_, i) => `alone-${i}`);
    for (const name of alone) await stage.addPod({ name, cpu: CPUS });
    for (const name of alone) await stage.bound(name);
    assert.ok(mostOnANode(await placed()) <= 2);
  });
});
