import { needs } from '../support/parts.ts';
import { launcherCases } from './cases/launchers.ts';
import { migrationCases } from './cases/migration.ts';
import { startCases } from './cases/starts.ts';
import { type KubeVirtStage, startKubeVirtStage } from './stage.ts';

describe('with the real KubeVirt', function () {
  needs('linux');
  needs('controlPlane');
  needs('kubectl');
  needs('kubevirt');
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
  for (const cases of [startCases, migrationCases, launcherCases]) cases(started);
});
