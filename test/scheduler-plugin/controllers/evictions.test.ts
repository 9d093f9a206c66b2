import assert from 'node:assert/strict';
import { type KubeClient, KubeError } from '../../../kube/client.ts';
import type { PodView } from '../../../scheduler-plugin/cluster/pod-view.ts';
import { Evictions } from '../../../scheduler-plugin/controllers/evictions.ts';
import { silent } from '../../support/logger.ts';
import { useVirtualClock } from '../../support/virtual-clock.ts';
import { onNode, podOf, viewOf, withUid } from '../extender-fixture.ts';

const why: Parameters<Evictions['consider']>[1] = { reason: 'DPUNotReady', text: 'the DPU of node n1 has died' };
const startOf = (uid: string, labels: object = {}, namespace = 'default'): PodView =>
  viewOf(onNode(withUid(podOf('4'), uid, { labels, resourceVersion: '1', namespace })))!;
const LAUNCHER = { 'kubevirt.io': 'virt-launcher' };

/** Answers of the API server, by cause. */
const REFUSALS = {
  failure: new KubeError(500, 'InternalError', 'etcdserver: request timed out'),
  budget: new KubeError(429, 'TooManyRequests', 'Cannot evict pod as it would violate the pod’s disruption budget.'),
  kubeVirt: new KubeError(
    429,
    'HTTP429',
    'admission webhook "virt-launcher-eviction-interceptor.kubevirt.io" denied the request: Eviction request for target Pod',
  ),
  changed: new KubeError(409, 'Conflict', 'DELETE a: 409 Conflict: the ResourceVersion in the precondition'),
  forbidden: new KubeError(403, 'Forbidden', 'DELETE a: 403 Forbidden: cannot delete resource "pods"'),
  gone: new KubeError(404, 'NotFound', 'POST eviction: 404 NotFound: pods "a" not found'),
};
type Answer = keyof typeof REFUSALS | 'ok';

interface Setting {
  readonly policy?: 'evict' | 'hold';
  /** Answers to evictions and to deletions, in order; the last one repeats. */
  readonly evictions?: readonly Answer[];
  readonly deletions?: readonly Answer[];
}

function evictionsOf(clock: ReturnType<typeof useVirtualClock>, { policy = 'evict', ...answers }: Setting = {}) {
  const calls: { path: string; body: object; at: number }[] = [];
  const [events, messages, outcomes]: string[][] = [[], [], []];
  const state = {
    active: true,
    version: '1',
    started: undefined as string | undefined,
    /** Runs while the API server processes a request. */
    during: (): void => undefined,
  };
  const counts = { evictions: 0, deletions: 0 };
  const answer = async (kind: keyof typeof counts, path: string, body: object) => {
    calls.push({ path, body, at: Math.round(clock.seconds * 10) / 10 });
    state.during();
    const said = answers[kind] ?? ['ok'];
    const next = said[Math.min(counts[kind]++, said.length - 1)] ?? 'ok';
    if (next !== 'ok') throw REFUSALS[next];
  };
  const client = {
    create: (path: string, body: object) => answer('evictions', path, body),
    delete: (path: string, { body }: { body: object }) => answer('deletions', path, body),
  };
  const evictions = new Evictions({
    client: client as unknown as KubeClient,
    events: {
      record: ({ name }, { reason, message }) => {
        events?.push(`${reason} ${name}`);
        messages?.push(message);
      },
    },
    policy,
    stuck: (pod) => {
      if (pod.uid === 'mistake') throw new RangeError('a mistake');
      return pod.uid === state.started ? undefined : { pod: { ...pod, version: state.version }, why };
    },
    active: () => state.active,
    onAttempt: (outcome) => void outcomes?.push(outcome),
    log: silent,
  });
  const pass = (seconds: number) => clock.pass(seconds, 0.1);
  const times = () => calls.map(({ at }) => at);
  const pods = () => calls.map(({ path }) => path.split('/')[6]);
  return { evictions, calls, times, pods, events, messages, outcomes, state, pass };
}

describe('evictions', () => {
  const clock = useVirtualClock(0);

  it('continue after an unexpected error', async () => {
    const { evictions, pods, pass } = evictionsOf(clock);
    for (const uid of ['mistake', 'a']) evictions.consider(startOf(uid), why);
    await pass(3);
    assert.deepEqual(pods(), ['a']);
  });

  it('apply only to the pod with that uid, and record an Event on it', async () => {
    const { evictions, calls, events, outcomes, pass } = evictionsOf(clock);
    evictions.consider(startOf('a'), why);
    await pass(1);
    assert.equal(calls[0]?.path, '/api/v1/namespaces/default/pods/a/eviction');
    const metadata = { name: 'a', namespace: 'default' };
    const deleteOptions = { preconditions: { uid: 'a' } };
    assert.deepEqual(calls[0]?.body, { apiVersion: 'policy/v1', kind: 'Eviction', metadata, deleteOptions });
    assert.deepEqual([events, outcomes], [['EvictedBeforeStart a'], ['evicted']]);
  });

  it('of 80 pods of one namespace delay the only pod of another by one turn', async () => {
    const { evictions, calls, pass } = evictionsOf(clock);
    for (let i = 0; i < 80; i++) evictions.consider(startOf(`crowd-${i}`, {}, 'crowd'), why);
    evictions.consider(startOf('victim', {}, 'victims'), why);
    await pass(2);
    const turns = calls.map(({ path, at }) => `${path.split('/')[4]} ${at}`);
    assert.deepEqual(turns, ['crowd 0.1', 'victims 1.1']);
  });

  it('only record one Event for each pod under the policy hold', async () => {
    const { evictions, calls, events, pass } = evictionsOf(clock, { policy: 'hold' });
    evictions.consider(startOf('a'), why);
    evictions.consider(startOf('a'), why);
    await pass(10);
    assert.deepEqual([calls, events], [[], ['FailedToStart a']]);
  });

  it('forget the pods that wait for their turn when another replica becomes active', async () => {
    const { evictions, pods, state, pass } = evictionsOf(clock);
    for (const uid of ['a', 'b', 'c']) evictions.consider(startOf(uid), why);
    await pass(0.5);
    state.active = false;
    await pass(5);
    state.active = true;
    evictions.consider(startOf('d'), why);
    await pass(5);
    assert.deepEqual(pods(), ['a', 'd']);
  });

  it('end with a stop, for pods that wait for their turn or for a retry', async () => {
    const { evictions, calls, pass } = evictionsOf(clock, { evictions: ['failure'] });
    for (const uid of ['a', 'b']) evictions.consider(startOf(uid), why);
    await pass(0.5);
    evictions.stop();
    await pass(300);
    assert.equal(calls.length, 1);
  });
});

describe('evictions that fail', () => {
  const clock = useVirtualClock(0);

  for (const refusal of ['failure', 'budget'] as const)
    it(`${refusal}: are retried with a backoff of at most one minute, and reported after the third failure`, async () => {
      const { evictions, times, events, messages, pass } = evictionsOf(clock, { evictions: [refusal] });
      evictions.consider(startOf('a', LAUNCHER), why);
      await pass(300);
      const waits = times()
        .slice(1)
        .map((time, i) => Math.round(time - times()[i]!));
      assert.deepEqual(waits, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
      assert.deepEqual(events, ['CannotEvict a']);
      assert.match(messages?.[0] ?? '', /the DPU of node n1 has died; evicting the pod failed: .*(etcd|budget)/);
    });

  it('are not retried sooner when the pod changes', async () => {
    const { evictions, times, pass } = evictionsOf(clock, { evictions: ['failure'] });
    for (let tenths = 0; tenths < 100; tenths++) {
      evictions.consider(startOf('a'), why);
      await pass(0.1);
    }
    assert.equal(times().length, 4);
  });
});

describe('launchers whose eviction KubeVirt denies', () => {
  const clock = useVirtualClock(0);

  it('are deleted only if their uid and resourceVersion are unchanged', async () => {
    const { evictions, calls, events, messages, outcomes, state, pass } = evictionsOf(clock, {
      evictions: ['kubeVirt'],
    });
    state.version = '7';
    evictions.consider(startOf('a', LAUNCHER), why);
    await pass(90);
    const paths = ['/api/v1/namespaces/default/pods/a/eviction', '/api/v1/namespaces/default/pods/a'];
    assert.deepEqual([calls[0]?.path, calls[1]?.path, calls.length], [...paths, 2]);
    const preconditions = { uid: 'a', resourceVersion: '7' };
    assert.deepEqual(calls[1]?.body, { apiVersion: 'v1', kind: 'DeleteOptions', preconditions });
    assert.deepEqual([events, outcomes], [['EvictedBeforeStart a'], ['deleted']]);
    assert.match(messages?.[0] ?? '', /deleted: KubeVirt denies its eviction/);
  });

  it('are checked again if they have changed since', async () => {
    const answers: Setting = { evictions: ['kubeVirt'], deletions: ['changed', 'ok'] };
    const { evictions, calls, outcomes, events, state, pass } = evictionsOf(clock, answers);
    evictions.consider(startOf('a', LAUNCHER), why);
    await pass(0.5);
    state.version = '2';
    await pass(10);
    assert.deepEqual(outcomes, ['changed', 'deleted']);
    assert.match(JSON.stringify(calls[3]?.body), /"resourceVersion":"2"/);
    assert.deepEqual(events, ['EvictedBeforeStart a']);
  });

  it('get an Event if deletion is refused, too', async () => {
    const answers: Setting = { evictions: ['kubeVirt'], deletions: ['forbidden'] };
    const { evictions, events, messages, outcomes, pass } = evictionsOf(clock, answers);
    evictions.consider(startOf('a', LAUNCHER), why);
    await pass(10);
    assert.deepEqual([events, outcomes?.[0]], [['CannotEvict a'], 'refused']);
    assert.match(messages?.[0] ?? '', /cannot delete resource "pods"/);
  });

  it('are not deleted if they run, nor are other pods', async () => {
    for (const pod of [startOf('a'), { ...startOf('a', LAUNCHER), pending: false }]) {
      const { evictions, calls, pass } = evictionsOf(clock, { evictions: ['kubeVirt'] });
      evictions.consider(pod, why);
      await pass(10);
      assert.ok(calls.length > 1 && calls.every(({ path }) => path.endsWith('/pods/a/eviction')));
    }
  });
});
