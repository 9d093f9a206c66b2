import assert from 'node:assert/strict';
import { createOvsScene, type OvsScene, settled } from '../../../bench/node-agent/ovs-stage.ts';
import { startManyThreads } from '../../../bench/support/c-program.ts';
import { needs, skipWithout } from '../../support/parts.ts';

/** What the benchmarks of Open vSwitch's threads wait for. Without it they would wait until their deadline. */
describe('the contenders of the benchmark of Open vSwitch’s threads', function () {
  this.timeout(60_000);
  needs('gcc');
  let scene: OvsScene;
  before(async function () {
    skipWithout('twoCpus', this);
    scene = await createOvsScene(await startManyThreads(2));
  });
  after(() => scene?.remove());

  for (const contender of ['agent', 'inC', 'upstream'] as const) {
    it(`say when the last thread was moved, each time: ${contender}`, async () => {
      const reactor = await scene[contender]();
      for (let round = 0; round < 2; round++) {
        const moved = reactor.moved();
        const begun = scene.assign();
        const at = await moved;
        assert.ok(scene.isOn(scene.first));
        assert.ok(at > begun && at < process.hrtime.bigint());
        scene.release();
        await settled(scene, scene.all);
      }
      await reactor.stop();
    });
  }
});
