import assert from 'node:assert/strict';
import { createSchedulerLease } from '../../../webhook/cluster/scheduler-lease.ts';
import type { SchedulerRoute } from '../../../webhook/pods/gather.ts';
import { createPodRouting } from '../../../webhook/pods/route-pod.ts';
import { createVmValidation } from '../../../webhook/vms/validate-vm.ts';
import { silent } from '../../support/logger.ts';
import {
  announcementsOf,
  mutationOf,
  optionsOf,
  patched,
  patchOf,
  podVector,
  recordedEvents,
  requestFor,
  type TestPod,
} from '../launcher-fixture.ts';

const OURS = 'plumbline-scheduler';
const WORKING: SchedulerRoute = { schedulerName: OURS, schedulerAway: () => undefined };
const AWAY: SchedulerRoute = { schedulerName: OURS, schedulerAway: () => 'no replica of it leads' };
const OFF: SchedulerRoute = { schedulerName: '', schedulerAway: () => 'not asked' };

function launcher(schedulerName?: string): TestPod {
  const pod = podVector();
  delete pod.spec['schedulerName'];
  return schedulerName === undefined ? pod : { ...pod, spec: { ...pod.spec, schedulerName } };
}

function routing(route: SchedulerRoute) {
  const recorded = recordedEvents();
  const announcements = announcementsOf(recorded);
  return { route: createPodRouting({ route, announcements }), mutate: mutationOf({ route, announcements }), recorded };
}

describe('the scheduler of a launcher', () => {
  for (const own of [undefined, '', 'default-scheduler']) {
    const named = own === undefined ? 'none' : JSON.stringify(own);
    for (const way of ['mutate', 'route'] as const) {
      it(`${way}: becomes Plumbline’s for a launcher that names ${named}`, async () => {
        const reviews = routing(WORKING);
        const pod = launcher(own);
        const after = patched(pod, await reviews[way](requestFor(pod)));
        assert.equal(after.spec['schedulerName'], OURS);
        assert.ok(!reviews.recorded.events.some(({ reason }) => reason.includes('Scheduler')));
        assert.deepEqual(patchOf(await reviews[way](requestFor(after))), [], 'a second pass changes nothing');
      });
    }
  }

  it('stays the user’s choice, and is reported once', async () => {
    for (const way of ['mutate', 'route'] as const) {
      const reviews = routing(WORKING);
      const pod = launcher('volcano');
      const after = patched(pod, await reviews[way](requestFor(pod)));
      assert.equal(after.spec['schedulerName'], 'volcano');
      const said = reviews.recorded.events.filter(({ reason }) => reason === 'OtherScheduler');
      assert.equal(said.length, 1);
      assert.match(said[0]?.message ?? '', /"volcano".*remove it for plumbline-scheduler/);
    }
  });

  it('is the only change of routing, which ignores other pods, refuses nothing, and can be turned off', async () => {
    const { route } = routing(WORKING);
    assert.deepEqual(patchOf(await route(requestFor(launcher()))), [
      { op: 'add', path: '/spec/schedulerName', value: OURS },
    ]);
    const hotPlug = podVector('hp-volume-pod');
    assert.deepEqual(await route(requestFor(hotPlug)), { allowed: true });
    const web = { metadata: { name: 'web' }, spec: { containers: [{ name: 'web' }] } };
    assert.deepEqual(await route(requestFor(web)), { allowed: true });
    assert.deepEqual(await route(requestFor({ spec: 'nonsense' })), { allowed: true });
    for (const way of ['mutate', 'route'] as const) {
      const pod = launcher('default-scheduler');
      const after = patched(pod, await routing(OFF)[way](requestFor(pod)));
      assert.equal(after.spec['schedulerName'], 'default-scheduler');
    }
  });

  it('is set only when pods are created, not for updates or other kinds', async () => {
    const { route } = routing(WORKING);
    assert.deepEqual(await route(requestFor(launcher(), { operation: 'UPDATE' })), { allowed: true });
    const kind = { group: 'kubevirt.io', version: 'v1', kind: 'VirtualMachineInstance' };
    assert.deepEqual(await route(requestFor(launcher(), { kind })), { allowed: true });
  });

  it('is also set for an ordinary pod that opts in, but not for others', async () => {
    const pod = (annotations: Record<string, string>) => ({
      metadata: { name: 'dpdk', annotations },
      spec: {
        containers: [{ name: 'dpdk', resources: { requests: AMOUNTS, limits: AMOUNTS } }],
        schedulerName: 'default-scheduler',
      },
    });
    const { mutate } = routing(WORKING);
    const routed = (one: object) => async () =>
      patchOf(await mutate(requestFor(one))).filter(({ path }) => path === '/spec/schedulerName').length;
    assert.equal(await routed(pod({ 'plumbline.dev/align': 'whole-cores' }))(), 1);
    assert.equal(await routed(pod({}))(), 0);
  });

  it('is reported on the VM while it is down', async () => {
    for (const way of ['mutate', 'route'] as const) {
      const reviews = routing(AWAY);
      const pod = launcher();
      const after = patched(pod, await reviews[way](requestFor(pod)));
      assert.equal(after.spec['schedulerName'], OURS);
      const [event] = reviews.recorded.events.filter(({ reason }) => reason === 'SchedulerNotReady');
      assert.match(event?.message ?? '', /waits for plumbline-scheduler: no replica of it leads.*kubectl/);
      const dry = routing(AWAY);
      await dry[way](requestFor(launcher(), { dryRun: true }));
      assert.deepEqual(dry.recorded.events, []);
    }
  });
});

const AMOUNTS = { cpu: '3', memory: '1Gi' };

describe('the scheduler that a VM names', () => {
  const vm = (schedulerName: string | undefined, annotations: Record<string, string>) => ({
    metadata: { name: 'vm', annotations: {} },
    spec: {
      template: {
        metadata: { annotations },
        spec: { domain: { cpu: { dedicatedCpuPlacement: true } }, schedulerName },
      },
    },
  });
  const FULL = { 'kubevirt.io/CPUManagerPolicyBetaOptions': 'full-pcpus-only' };
  const kind = { group: 'kubevirt.io', version: 'v1', kind: 'VirtualMachine' };
  const warnings = async (object: object, oldObject?: object) => {
    const review = createVmValidation(optionsOf({ route: WORKING }) as Parameters<typeof createVmValidation>[0]);
    const operation = oldObject === undefined ? 'CREATE' : 'UPDATE';
    const { warnings: said = [] } = await review(requestFor(object, { kind, operation, oldObject }));
    return said.filter((text) => text.startsWith('spec.schedulerName'));
  };

  it('causes a warning when it is written, if the VM asks Plumbline for something', async () => {
    assert.match((await warnings(vm('volcano', FULL)))[0] ?? '', /"volcano" does not check kubelets/);
    assert.deepEqual(await warnings(vm('volcano', {})), []);
    assert.deepEqual(await warnings(vm('default-scheduler', FULL)), []);
    assert.deepEqual(await warnings(vm(OURS, FULL)), []);
    assert.deepEqual(await warnings(vm(undefined, FULL)), []);
    const changed = vm('volcano', { ...FULL, other: 'x' });
    assert.deepEqual(await warnings(changed, vm('volcano', FULL)), []);
  });
});

describe('whether the scheduler works', () => {
  /** A list of Leases, then a watch without events. */
  async function watching(items: object[], use: (at: (seconds: number) => string | undefined) => void) {
    let clock = 0;
    const stop = new AbortController();
    const list = { metadata: { resourceVersion: '1' }, items };
    const client = {
      get: async () => list,
      watch: (_path: string, { signal }: { signal?: AbortSignal }) =>
        Promise.resolve({
          async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
            await new Promise<void>((resolve) => signal?.addEventListener('abort', () => resolve()));
          },
        }),
    };
    const lease = createSchedulerLease(OURS, { client: client as never, log: silent, now: () => clock });
    const done = lease.run(stop.signal);
    for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve));
    use((seconds) => {
      clock = seconds;
      return lease.away();
    });
    stop.abort();
    await done;
  }
  const leaseOf = (holderIdentity: string) => ({
    metadata: { name: OURS, namespace: 'plumbline-system', resourceVersion: '1' },
    spec: { holderIdentity, leaseDurationSeconds: 8 },
  });

  it('follows from its Lease: missing, released, renewed, or not renewed', async () => {
    await watching([], (at) => assert.match(at(0) ?? '', /ever led/));
    await watching([leaseOf('')], (at) => assert.match(at(0) ?? '', /no replica of it leads/));
    await watching([leaseOf('pod-1_uuid')], (at) => {
      assert.equal(at(0), undefined);
      assert.equal(at(30), undefined);
      assert.match(at(45) ?? '', /not renewed its Lease for 45 s/);
    });
  });
});
