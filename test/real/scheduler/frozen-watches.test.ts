import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { type FreezingProxy, startFreezingProxy } from '../../support/freezing-proxy.ts';
import { needs } from '../../support/parts.ts';
import { until } from '../../support/until.ts';
import { type Replica, type Stage, startStage, topologyOf } from './stage.ts';

/** CPUs that the node has for pods, and those of each pod. */
const [NODE_CPUS, POD_CPUS] = [14, 2];
/** Seconds until the watches are open again: the silence, and the proof that nothing is missing. */
const REOPENED_SECONDS = 120 + 10;
/** Seconds in which the reservation of a pod that is not known to be bound would end: see reservationSeconds. */
const PODS = 30;

describe('an extender whose watches freeze, with a real kube-scheduler', function () {
  needs('controlPlane');
  needs('kubectl');
  this.timeout(600_000);
  let stage: Stage;
  let proxy: FreezingProxy;
  let replica: Replica;

  before(async () => {
    stage = await startStage();
    const { port } = new URL(stage.plane.url);
    proxy = await startFreezingProxy(Number(port));
    await stage.addNodes([{ name: 'node', topology: topologyOf() }]);
    const api = { url: `https://127.0.0.1:${proxy.port}`, ca: stage.plane.ca };
    replica = await stage.startReplica({ api });
    await until('the replica to be active', () => replica.isActive());
    await stage.startScheduler({ podMaxBackoffSeconds: 5 });
  });
  after(async () => {
    await stage?.stop();
    await proxy?.stop();
  });

  const boundCpus = async () => (await stage.pods()).filter(({ spec }) => spec.nodeName).length * POD_CPUS;

  it('never promises a CPU twice, stays ready, and knows after its watches are open again what has changed', async () => {
    const { connections } = proxy;
    const begun = performance.now();
    const seconds = () => (performance.now() - begun) / 1000;
    proxy.freezeOpen('silent');
    let most = 0;
    for (let i = 0; seconds() < REOPENED_SECONDS; i++) {
      if (i < PODS) await stage.addPod({ name: `pod-${i}`, cpu: String(POD_CPUS) });
      await delay(4000);
      most = Math.max(most, await boundCpus());
      assert.ok(most <= NODE_CPUS, `${most} of ${NODE_CPUS} CPUs are promised after ${seconds().toFixed(0)} s`);
    }
    assert.equal(most, NODE_CPUS);
    await until('the watches to be open again', () => proxy.connections - connections >= 7);
    assert.ok(seconds() < REOPENED_SECONDS + 30, `reopened after ${seconds().toFixed(0)} s`);
    assert.match(readFileSync(replica.logFile, 'utf8'), /opening it again/);
    const [bound] = (await stage.pods()).filter(({ spec }) => spec.nodeName);
    await stage.client.delete(`/api/v1/namespaces/default/pods/${bound?.metadata.name}`);
    await until('a waiting pod to get the room', async () => (await boundCpus()) === NODE_CPUS);
    assert.equal(await replica.isReady(), true);
  });
});
