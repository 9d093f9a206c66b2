import { createEmbeddedCluster } from '../../cli/demo/cluster.ts';
import { needs } from '../support/parts.ts';
import { testOutages } from './outages/run.ts';
import { type OutageStage, startOutageStage } from './outages/stage.ts';

describe('a killed part of Plumbline in the demo', function () {
  needs('linux');
  this.timeout(300_000);
  let stage: OutageStage;
  before(async () => {
    stage = await startOutageStage(createEmbeddedCluster);
  });
  after(() => stage.stop());
  testOutages(() => stage);
});
