import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { secondsUntil, until } from '../../support/until.ts';
import { onControlPlane } from '../control-plane-stage.ts';
import { fullTopology, type Replica, report, type Stage, startStage, topologyOf } from './stage.ts';

const RECHECKS = 'plumbline_extender_rechecks_total';
const nodesNamed = (prefix: string, count: number) =>
  Array.from({ length: count }, (_, i) => `${prefix}-${String(i).padStart(3, '0')}`);

describe('placement with a real kube-scheduler', function () {
  onControlPlane(this);
  let stage: Stage;
  let replica: Replica;

  before(async () => {
    stage = await startStage();
    replica = await stage.startReplica();
    // The default profile: with 120 nodes it stops after 100 pass its own filters.
    await stage.startScheduler();
  });
  after(() => stage?.stop());

  const boundTo = async (pod: string) => {
    const isBound = async () => (await stage.podOf(pod)).spec.nodeName !== undefined;
    const took = await secondsUntil(`${pod} to be bound`, isBound).catch(async (error: Error) => {
      const { status } = await stage.podOf(pod);
      const counts = [RECHECKS, 'plumbline_extender_calls_total', 'plumbline_extender_active'];
      const known = await Promise.all(counts.map(async (name) => `${name} ${await replica.metric(name)}`));
      throw new Error(`${error.message}: ${status.conditions?.[0]?.message}; ${known.join(', ')}`);
    });
    return { node: (await stage.podOf(pod)).spec.nodeName, took };
  };

  /** The labels from reports are written: such a write wakes every waiting pod. */
  const labelled = () =>
    until('every node to have its labels', async () => {
      const { items } = (await stage.client.get('/api/v1/nodes')) as {
        items: { metadata: { labels: Record<string, string> } }[];
      };
      return items.every(({ metadata }) => metadata.labels['plumbline.dev/threads-per-core'] === '2');
    });

  const placeAgainAndAgain = async (node: string, rounds: number, more: Record<string, unknown>, helps: number) => {
    let slowest = 0;
    let helped = 0;
    for (let round = 0; round < rounds && (helps === 0 || helped < helps); round++) {
      const [name, before] = [`only-${node}-${round}`, await replica.metric(RECHECKS)];
      await stage.addPod({ name, cpu: '8', more });
      const bound = await boundTo(name);
      assert.equal(bound.node, node);
      slowest = Math.max(slowest, bound.took);
      if ((await replica.metric(RECHECKS)) > before) helped++;
      await stage.client.delete(`/api/v1/namespaces/default/pods/${name}`);
      await until('the room to be free', async () => (await replica.metric('plumbline_extender_reservations')) === 0);
    }
    console.log(`      the slowest was bound after ${slowest.toFixed(1)} s`);
    return helped;
  };

  it('finds the only node of 120 that fits, under the default profile', async () => {
    await stage.addNodes(nodesNamed('n', 119).map((name) => ({ name, topology: fullTopology() })));
    await stage.addNodes([{ name: 'n-last', topology: topologyOf() }]);
    await labelled();
    await placeAgainAndAgain('n-last', 12, {}, 0);
  });

  it('finds it among 400 if the scheduler offers 100 at a time: the extender touches nodes that were never offered', async () => {
    await report(stage.client, 'n-last', fullTopology());
    await stage.addNodes(nodesNamed('m', 279).map((name) => ({ name, topology: fullTopology() })));
    await stage.addNodes([{ name: 'm-last', topology: topologyOf() }]);
    await stage.startScheduler({ name: 'narrow', percentageOfNodesToScore: 5 });
    await labelled();
    // The scheduler retries a refused pod when it has written the refusal, so this takes some rounds.
    const helped = await placeAgainAndAgain('m-last', 40, { schedulerName: 'narrow' }, 2);
    assert.equal(helped, 2);
    await report(stage.client, 'm-last', fullTopology());
  });

  it('gives the reason as text, and wakes the pod when a node reports room', async () => {
    await stage.addPod({ name: 'too-large', cpu: '10' });
    await until('the reason', async () => {
      const { conditions = [] } = (await stage.podOf('too-large')).status;
      return conditions.some(({ message = '' }) => message.includes('too few free whole cores'));
    });
    await report(stage.client, 'n-000', topologyOf());
    const { node, took } = await boundTo('too-large');
    assert.equal(node, 'n-000');
    console.log(`      bound after ${took.toFixed(1)} s`);
  });

  it('gives the last cores to one of two pods that two schedulers try at once, and places the other when they are free', async () => {
    await stage.addNodes([{ name: 'shared', topology: topologyOf(), labels: { race: 'yes' } }]);
    const place = (name: string, cpu: string, schedulerName: string) =>
      stage.addPod({ name, cpu, more: { schedulerName, nodeSelector: { race: 'yes' } } });
    await place('first', '10', 'default-scheduler');
    await boundTo('first');
    await Promise.all([place('left', '4', 'default-scheduler'), place('right', '4', 'narrow')]);
    const bound = async () => {
      const both = await Promise.all([stage.podOf('left'), stage.podOf('right')]);
      return both.filter(({ spec }) => spec.nodeName !== undefined).map(({ metadata }) => metadata.name);
    };
    await until('one to be bound', async () => (await bound()).length > 0);
    await delay(3000);
    const [winner, ...more] = await bound();
    assert.deepEqual(more, [], 'the other waits');
    await stage.client.delete(`/api/v1/namespaces/default/pods/${winner}`);
    await boundTo(winner === 'left' ? 'right' : 'left');
  });
});
