import assert from 'node:assert/strict';
import { needs } from '../../support/parts.ts';
import { secondsUntil, until } from '../../support/until.ts';
import { onControlPlane } from '../control-plane-stage.ts';
import { inParallel, type Pair, type Stage, startStage, topologyOf } from './stage.ts';

/** Of 14 free CPUs on a node. */
const PODS_PER_NODE = 3;

describe('pairs of a real kube-scheduler and an extender', function () {
  onControlPlane(this);
  needs('root');
  let stage: Stage;
  let pairs: Pair[];

  before(async () => {
    stage = await startStage();
    pairs = [await stage.startPair('pair-1'), await stage.startPair('pair-2')];
  });
  after(() => stage?.stop());

  const active = async (): Promise<Pair> => {
    let leader: Pair | undefined;
    await until('one extender to be active', async () => {
      const states = await Promise.all(pairs.map(({ extender }) => extender.isActive().catch(() => false)));
      leader = states.filter(Boolean).length === 1 ? pairs[states.indexOf(true)] : undefined;
      return leader !== undefined;
    });
    return leader!;
  };
  const allBound = async (count: number) => {
    await until(
      `${count} pods to be bound`,
      async () => (await stage.pods()).filter(({ spec }) => spec.nodeName !== undefined).length === count,
    );
    const perNode = new Map<string, number>();
    for (const { spec } of await stage.pods()) perNode.set(spec.nodeName!, (perNode.get(spec.nodeName!) ?? 0) + 1);
    for (const [node, pods] of perNode) assert.ok(pods <= PODS_PER_NODE, `${node} was promised to ${pods} pods`);
  };

  it('lose nothing and promise nothing twice when the leading one is killed during 500 pods', async () => {
    const pods = 500;
    const nodes = Array.from({ length: Math.ceil(pods / PODS_PER_NODE) + 3 }, (_, i) => `n${i}`);
    await stage.addNodes(nodes.map((name) => ({ name, topology: topologyOf() })));
    const first = await active();
    for (const { extender } of pairs) await extender.ready();
    const more = { schedulerName: 'plumbline-scheduler' };
    const creating = inParallel(
      Array.from({ length: pods }, (_, i) => `p${i}`),
      (name) => stage.addPod({ name, cpu: '4', more }),
      8,
    );
    const isUnderWay = async () => (await stage.pods()).filter(({ spec }) => spec.nodeName !== undefined).length > 150;
    await until('the first pods to be bound', isUnderWay);
    await Promise.all([first.scheduler.stop('SIGKILL'), first.extender.stop('SIGKILL')]);
    pairs.splice(pairs.indexOf(first), 1);
    const took = await secondsUntil('the other to take over', () => pairs[0]!.extender.isActive());
    console.log(`      taken over after ${took.toFixed(1)} s`);
    await creating;
    await allBound(pods);
  });
});
