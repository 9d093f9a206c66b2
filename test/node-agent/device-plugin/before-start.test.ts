import assert from 'node:assert/strict';
import type { PodResources } from '../../../kube/kubelet-api/gen/pod-resources.ts';
import { createBeforeStart } from '../../../node-agent/device-plugin/before-start.ts';
import type { BeforeStart } from '../../../node-agent/device-plugin/plugin-server.ts';
import { podResourcesOf } from '../../support/pod-resources.ts';
import { recordingLogger } from '../support.ts';

const TUNNEL = 'plumbline.dev/tunnel';
const pods = [
  podResourcesOf({
    name: 'other',
    containers: [{ name: 'c', cpuIds: [8], devices: [{ resourceName: TUNNEL, deviceIds: ['tunnel-1'] }] }],
  }),
  podResourcesOf({
    name: 'vm',
    namespace: 'ns',
    containers: [
      { name: 'sidecar', cpuIds: [] },
      {
        name: 'compute',
        cpuIds: [3, 2],
        devices: [
          { resourceName: 'physnet.plumbline.dev/a', deviceIds: ['a-0'] },
          { resourceName: TUNNEL, deviceIds: ['tunnel-0'] },
        ],
      },
    ],
  }),
];

describe('before a container with Plumbline devices starts', () => {
  let holders: unknown[];
  let outcomes: string[];
  let logged: ReturnType<typeof recordingLogger>;

  const barrier = (list: () => Promise<PodResources[]>, check: () => Promise<string | undefined>) => {
    holders = [];
    outcomes = [];
    logged = recordingLogger();
    return createBeforeStart({
      podResources: { list },
      check: (_resource, holder) => {
        holders.push(holder && { ...holder, cpus: holder.cpus.toString() });
        return check();
      },
      answerWithin: 0.05,
      onOutcome: (_resource, outcome) => outcomes.push(outcome),
      log: logged.log,
    });
  };
  const grant = async () => undefined;
  const start = (before: BeforeStart, signal = new AbortController().signal) => before(TUNNEL, ['tunnel-0'], signal);

  it('the allocation of the pod’s container is checked', async () => {
    await start(barrier(async () => pods, grant));
    assert.deepEqual(holders, [{ namespace: 'ns', podName: 'vm', container: 'compute', cpus: '2-3' }]);
    assert.deepEqual(outcomes, ['passed']);
  });

  it('the kubelet is asked again if it answers ResourceExhausted', async () => {
    let tries = 0;
    const list = async () => {
      if (++tries < 3) throw new Error('ResourceExhausted');
      return pods;
    };
    await start(barrier(list, grant));
    assert.notEqual(holders[0], undefined);
  });

  it('the check has no holder if the kubelet does not answer', async () => {
    await start(barrier(() => Promise.reject(new Error('down')), grant));
    assert.deepEqual(holders, [undefined]);
  });

  it('the kubelet is not asked again once the request is cancelled', async () => {
    const stop = new AbortController();
    let tries = 0;
    const list = () => {
      tries++;
      stop.abort();
      return Promise.reject(new Error('cancelled'));
    };
    await start(barrier(list, grant), stop.signal).catch(() => undefined);
    assert.equal(tries, 1);
    assert.ok(logged.said('allocation check skipped: owner unknown'));
  });

  it('a check that hangs does not keep the container from starting', async () => {
    await start(
      barrier(
        async () => pods,
        () => new Promise(() => {}),
      ),
    );
    assert.deepEqual(outcomes, ['unanswered']);
    assert.ok(logged.said('agent timed out; starting the container before OVS left its CPUs'));
  });

  it('a refusal or an error of the check prevents the start, and is logged', async () => {
    for (const check of [async () => 'not there', () => Promise.reject(new Error('not there'))]) {
      await assert.rejects(start(barrier(async () => pods, check)), /^Error: not there$/);
      assert.deepEqual(outcomes, ['refused']);
      const { msg, pod, container, resource, devices, reason } = logged.lines[0] ?? {};
      assert.deepEqual([msg, pod, container], ['container start refused', 'ns/vm', 'compute']);
      assert.deepEqual([resource, devices, reason], [TUNNEL, ['tunnel-0'], 'not there']);
    }
  });
});
