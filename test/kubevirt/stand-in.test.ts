import { needs } from '../support/parts.ts';
import { refusalCases } from './cases/refusals.ts';
import { runningCases } from './cases/running.ts';
import { startCases } from './cases/starts.ts';
import { type KubeVirtStage, startKubeVirtStage } from './stage.ts';

/** The sandbox's KubeVirt, checked with the same cases as the real one. */
describe('with the stand-in for KubeVirt', function () {
  needs('linux');
  needs('controlPlane');
  needs('kubectl');
  this.timeout(900_000);
  let stage: KubeVirtStage | undefined;
  before(async () => {
    stage = await startKubeVirtStage();
  });
  after(() => stage?.stop());

  const started = () => {
    if (stage === undefined) throw new Error('the stage has not been started');
    return stage;
  };
  for (const cases of [startCases, runningCases, refusalCases]) cases(started);
});
