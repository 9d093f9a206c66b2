import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import type { KubeClient } from '../../kube/client.ts';
import { createNeedsReader } from '../../scheduler-plugin/cluster/pod-needs.ts';
import { observedPod, type PodView, podViewOf } from '../../scheduler-plugin/cluster/pod-view.ts';
import { createEvictions, type EvictionPolicy, type EvictionReason } from '../../scheduler-plugin/upkeep/evictions.ts';
import { silent } from '../support/logger.ts';
import { podOf, withUid } from './extender-fixture.ts';

const why: EvictionReason = { reason: 'DPUNotReady', text: 'the DPU of node n1 has died' };
const viewOf = (uid: string): PodView => {
  const pod = withUid(podOf('4'), uid);
  return podViewOf(observedPod.parse({ ...pod, spec: { ...pod.spec, nodeName: 'n1' } }), createNeedsReader('all'))!;
};

function evictionsOf(policy: EvictionPolicy, more: { stillStands?: () => boolean; active?: () => boolean } = {}) {
  const posted: { path: string; body: object; at: number }[] = [];
  const events: string[] = [];
  const create = async (path: string, body: object) => void posted.push({ path, body, at: performance.now() });
  const evictions = createEvictions({
    client: { create } as unknown as KubeClient,
    events: { record: ({ name }, { reason }) => void events.push(`${reason} ${name}`), flush: async () => undefined },
    policy,
    stillStands: more.stillStands ?? (() => true),
    active: more.active ?? (() => true),
    log: silent,
  });
  return { evictions, posted, events };
}

describe('evictions', () => {
  it('hit the pod of that uid and no other, and say so on it', async () => {
    const { evictions, posted, events } = evictionsOf('evict');
    evictions.consider(viewOf('a'), why);
    await delay(50);
    assert.equal(posted[0]?.path, '/api/v1/namespaces/default/pods/a/eviction');
    assert.deepEqual(posted[0]?.body, {
      apiVersion: 'policy/v1',
      kind: 'Eviction',
      metadata: { name: 'a', namespace: 'default' },
      deleteOptions: { preconditions: { uid: 'a' } },
    });
    assert.deepEqual(events, ['EvictedBeforeStart a']);
    evictions.stop();
  });

  it('come one a second', async () => {
    const { evictions, posted } = evictionsOf('evict');
    for (const uid of ['a', 'b', 'c']) evictions.consider(viewOf(uid), why);
    await delay(1500);
    assert.equal(posted.length, 2);
    assert.ok(posted[1]!.at - posted[0]!.at >= 990);
    evictions.stop();
  });

  const spared = [
    { name: 'a pod that has started in the meantime', more: { stillStands: () => false } },
    { name: 'any pod while another replica is active', more: { active: () => false } },
  ];
  for (const { name, more } of spared) {
    it(`spare ${name}`, async () => {
      const { evictions, posted } = evictionsOf('evict', more);
      evictions.consider(viewOf('a'), why);
      await delay(50);
      assert.deepEqual(posted, []);
      evictions.stop();
    });
  }

  it('are an Event and no more under the policy hold, once for each pod', async () => {
    const { evictions, posted, events } = evictionsOf('hold');
    evictions.consider(viewOf('a'), why);
    evictions.consider(viewOf('a'), why);
    await delay(50);
    assert.deepEqual([posted, events], [[], ['CannotStartHere a']]);
    evictions.stop();
  });
});
