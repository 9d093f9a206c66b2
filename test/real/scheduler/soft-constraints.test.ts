import assert from 'node:assert/strict';
import { needs } from '../../support/parts.ts';
import { secondsUntil, until } from '../../support/until.ts';
import { inParallel, type Replica, type Stage, startStage, topologyOf } from './stage.ts';

const ZONE = 'topology.kubernetes.io/zone';
const ZONES = ['a', 'b', 'c'];
const NODES_PER_ZONE = 4;

const apart = (group: string) => ({
  affinity: {
    podAntiAffinity: {
      preferredDuringSchedulingIgnoredDuringExecution: [
        { weight: 100, podAffinityTerm: { topologyKey: ZONE, labelSelector: { matchLabels: { group } } } },
      ],
    },
  },
});

describe('soft constraints on a real kube-scheduler', function () {
  needs('controlPlane');
  needs('kubectl');
  this.timeout(300_000);
  let stage: Stage;
  let replica: Replica;

  before(async function () {
    this.timeout(300_000);
    stage = await startStage();
    replica = await stage.startReplica();
    await until('the replica to be active', () => replica.isActive());
    await stage.startScheduler();
    const nodes = ZONES.flatMap((zone) => Array.from({ length: NODES_PER_ZONE }, (_, i) => ({ zone, i })));
    await stage.addNodes(
      nodes.map(({ zone, i }) => ({ name: `${zone}-${i}`, labels: { [ZONE]: zone }, topology: topologyOf() })),
    );
  });
  after(() => stage?.stop());
  afterEach(async () => {
    for (const { metadata } of await stage.pods()) {
      await stage.client.delete(`/api/v1/namespaces/default/pods/${metadata.name}`);
    }
    await until('the room to be free', async () => (await replica.metric('plumbline_extender_reservations')) === 0);
  });

  /** Creates pods at once. Resolves when all are bound, with the number in each zone and the seconds. */
  const burst = async (count: number, group: string, more: Readonly<Record<string, unknown>>) => {
    const names = Array.from({ length: count }, (_, i) => `${group}-${i}`);
    await inParallel(names, (name) => stage.addPod({ name, cpu: '4', labels: { group }, more }));
    const took = await secondsUntil('all to be bound', async () =>
      (await stage.pods()).every(({ spec }) => spec.nodeName),
    );
    const zones = (await stage.pods()).map(({ spec }) => spec.nodeName?.[0]);
    return { took, counts: ZONES.map((zone) => zones.filter((one) => one === zone).length) };
  };

  it('12 pods created at once that prefer separate zones end 4/4/4 in three zones', async () => {
    for (let round = 0; round < 3; round++) {
      const { counts, took } = await burst(12, `apart-${round}`, apart(`apart-${round}`));
      console.log(`      ${counts.join('/')} after ${took.toFixed(1)} s`);
      assert.deepEqual(counts, [4, 4, 4]);
      for (const { metadata } of await stage.pods()) {
        await stage.client.delete(`/api/v1/namespaces/default/pods/${metadata.name}`);
      }
      await until('the room to be free', async () => (await replica.metric('plumbline_extender_reservations')) === 0);
    }
  });
});
