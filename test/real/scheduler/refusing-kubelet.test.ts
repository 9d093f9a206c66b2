import assert from 'node:assert/strict';
import { needs } from '../../support/parts.ts';
import { secondsUntil, until } from '../../support/until.ts';
import { report, type Stage, startStage, topologyOf } from './stage.ts';

const REFUSAL = /its kubelet refused a pod of this shape: UnexpectedAdmissionError/;
const owning = (cpus: string) => topologyOf({ assignments: [{ podUID: 'other', container: 'compute', cpus }] });

describe('a kubelet that rejects what was predicted to fit, with a real kube-scheduler', function () {
  needs('controlPlane');
  needs('kubectl');
  this.timeout(300_000);
  let stage: Stage;

  before(async function () {
    this.timeout(300_000);
    stage = await startStage();
    // The fullest node is the first choice.
    await stage.addNodes([{ name: 'refuser', topology: owning('1-3,9-11') }]);
    await stage.addNodes(['n1', 'n2'].map((name) => ({ name, topology: topologyOf() })));
    const replica = await stage.startReplica();
    await until('it to be active', () => replica.isActive());
    await stage.startScheduler();
  });
  after(() => stage?.stop());

  /** The node of a new pod, once it has one, and the seconds until then. */
  const place = async (name: string) => {
    await stage.addPod({ name, cpu: '4' });
    const took = await secondsUntil(
      `${name} to be bound`,
      async () => (await stage.podOf(name)).spec.nodeName !== undefined,
    );
    return { node: (await stage.podOf(name)).spec.nodeName, took };
  };
  const waitsFor = async (name: string) =>
    (await stage.podOf(name)).status.conditions?.find(({ type }) => type === 'PodScheduled')?.message ?? '';

  it('gets one pod; its successor and the pods of others go to other nodes at once', async () => {
    const first = await place('first');
    assert.equal(first.node, 'refuser');
    const status = { phase: 'Failed', reason: 'UnexpectedAdmissionError', message: 'Pod was rejected' };
    const path = '/api/v1/namespaces/default/pods/first';
    await stage.client.patch(`${path}/status`, 'application/merge-patch+json', { status });
    await stage.client.delete(path, { query: { gracePeriodSeconds: 0 } });
    const nodes: (string | undefined)[] = [];
    let slowest = 0;
    for (const name of ['successor', 'a', 'b', 'c', 'd', 'e']) {
      const { node, took } = await place(name);
      nodes.push(node);
      slowest = Math.max(slowest, took);
    }
    console.log(
      `      1 pod was rejected; the others went to ${nodes.join(', ')}, the slowest after ${slowest.toFixed(1)} s`,
    );
    assert.deepEqual(nodes.toSorted(), ['n1', 'n1', 'n1', 'n2', 'n2', 'n2']);
  });

  it('is the reason for which a pod waits once no other node is left, until its report changes', async () => {
    await stage.addPod({ name: 'last', cpu: '4' });
    await until('it to wait', async () => REFUSAL.test(await waitsFor('last')));
    await report(stage.client, 'refuser', owning('1-2,9-10'));
    await until('it to be bound', async () => (await stage.podOf('last')).spec.nodeName === 'refuser');
  });
});
