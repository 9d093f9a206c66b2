import assert from 'node:assert/strict';
import { createEmbeddedCluster } from '../../cli/demo/cluster.ts';
import { PODS } from '../../sandbox/api-server/built-in-types.ts';
import type { KubePod } from '../../sandbox/objects.ts';
import { needs } from '../support/parts.ts';
import { testOutages } from './outages/run.ts';
import { type OutageStage, startOutageStage } from './outages/stage.ts';

/** Commands that reach the daemons or the kubelets through the API server. */
const COMMANDS = [
  { args: ['doctor', 'extender'], output: /pod plumbline-scheduler-demo is the leader; the extender answers/ },
  {
    args: ['doctor', 'preflight', '-o', 'wide'],
    output: /4 kubelets queried; you may create every object of the manifests/,
  },
  { args: ['ovs', 'status', 'numa1'], output: /ordinary threads should run on CPUs/ },
  { args: ['vm', 'status', 'smt-off'], output: /VM/ },
  { args: ['version'], output: /webhook.*0\.1\.0/ },
] as const;

describe('the demo’s cluster', function () {
  needs('linux');
  this.timeout(300_000);
  let stage: OutageStage;
  before(async () => {
    stage = await startOutageStage(createEmbeddedCluster);
  });
  after(() => stage.stop());

  for (const { args, output } of COMMANDS) {
    it(`plumbline ${args.join(' ')} is answered`, async () => {
      const answer = await stage.plumbline(...args);
      assert.match(answer.output.replace(/\s+/g, ' '), output);
      assert.doesNotMatch(answer.output, /404|no agent runs|is gone/);
    });
  }

  it('a pod with plumbline.dev/align gets whole cores', async () => {
    const annotations = { 'plumbline.dev/align': 'whole-cores' };
    const resources = { limits: { cpu: '3', memory: '1Gi' } };
    const pod: KubePod = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'aligned', namespace: 'demo', annotations },
      spec: { containers: [{ name: 'c', image: 'none', resources }] },
    };
    const created = await stage.cluster.client.create(PODS, pod);
    assert.equal(created.spec.containers[0]?.resources?.limits?.['cpu'], '4');
    await stage.cluster.client.delete(PODS, created, { gracePeriodSeconds: 0 });
  });

  describe('with a killed part of Plumbline', () => testOutages(() => stage));
});
