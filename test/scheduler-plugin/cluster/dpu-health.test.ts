import assert from 'node:assert/strict';
import { type KubeClient, KubeError } from '../../../kube/client.ts';
import { DpuMonitor } from '../../../scheduler-plugin/cluster/dpu-health.ts';
import { recordingLogger } from '../../support/logger.ts';
import { useVirtualClock } from '../../support/virtual-clock.ts';

describe('the DPU health in the extender', () => {
  const clock = useVirtualClock();

  /** The step of the clock, in seconds. */
  const STEP = 0.5;
  const DURATION = 40;

  function fleetOf(proof: (duration: number) => number = () => 1) {
    const state = { gets: 0, isDown: false };
    /** The Leases in the API server. */
    const leases = new Map<string, string>();
    const hosts = new Set<string>();
    const recorded = new Map<string, string>();
    const uids = new Map<string, string>();
    const [changes, forgotten]: string[][] = [[], []];
    const get = async (path: string) => {
      state.gets++;
      if (state.isDown) throw new KubeError(503, 'ServiceUnavailable', 'the API server is down');
      const renewTime = leases.get(path.slice(path.lastIndexOf('-') + 1));
      if (renewTime === undefined) throw new KubeError(404, 'NotFound', 'no such lease');
      return { metadata: {}, spec: { renewTime, leaseDurationSeconds: DURATION } };
    };
    const health = new DpuMonitor({
      client: { get } as unknown as KubeClient,
      namespace: 'ovn-kubernetes',
      whenUnknown: 'ready',
      proof,
      nodes: {
        get: (node: string) => ({ uid: uids.get(node), dpuHost: hosts.has(node), dpuReady: recorded.get(node) }),
      } as unknown as ConstructorParameters<typeof DpuMonitor>[0]['nodes'],
      log: recordingLogger().log,
      nowSeconds: () => clock.seconds,
    });
    health.on('changed', (node, verdict) => {
      if (verdict === undefined) forgotten?.push(node);
      else changes?.push(`${node} ${verdict.state} ${verdict.ready}`);
    });
    const renew = (node: string) => {
      const renewTime = `${clock.seconds} ${leases.get(node)?.length ?? 0}`;
      leases.set(node, renewTime);
      health.leaseChanged(node, { node, renewTime, duration: DURATION });
    };
    const pass = (seconds: number) => clock.pass(seconds, STEP);
    return { health, state, leases, hosts, recorded, uids, changes, forgotten, renew, pass };
  }

  it('a released Lease closes no node, causes no requests and leaves no state until it is renewed again', async () => {
    const { health, state, hosts, changes, forgotten, renew, pass } = fleetOf();
    hosts.add('n');
    renew('n');
    await pass(DURATION + 1);
    assert.equal(health.verdict('n').ready, false, 'dead');
    // The next read is in progress: its answer counts no longer.
    const reading = clock.pass(DURATION / 4);
    health.leaseChanged('n', { node: 'n', renewTime: 'x', duration: DURATION, released: true });
    assert.deepEqual([health.isReleased('n'), health.verdict('n').ready, forgotten], [true, true, ['n']]);
    await reading;
    const { gets } = state;
    const notified = changes?.length;
    await pass(10 * DURATION);
    assert.deepEqual([state.gets, changes?.length], [gets, notified]);
    // The Lease is deleted while it is released: the DPU does not count as dead.
    health.leaseChanged('n', undefined);
    await pass(10 * DURATION);
    assert.deepEqual([state.gets, health.verdict('n').ready, health.isReleased('n')], [gets, true, false]);
    renew('n');
    assert.equal(health.verdict('n').ready, false, 'not seen alive yet');
    await pass(1);
    renew('n');
    assert.equal(health.verdict('n').state, 'alive');
  });

  it('an overdue Lease is read at once, then four times in its duration', async () => {
    const { state, hosts, renew, pass } = fleetOf();
    hosts.add('n');
    renew('n');
    await pass(DURATION);
    assert.equal(state.gets, 0);
    await pass(1);
    assert.equal(state.gets, 1);
    await pass(DURATION);
    assert.ok(state.gets >= 4 && state.gets <= 5, `${state.gets} requests`);
  });

  it('a DPU is unknown, not dead, while the API server does not answer', async () => {
    const { health, state, hosts, renew, pass } = fleetOf();
    hosts.add('n');
    renew('n');
    await pass(1);
    renew('n');
    state.isDown = true;
    await pass(10 * DURATION);
    assert.deepEqual([health.verdict('n').state, health.verdict('n').ready], ['unknown', true]);
    state.isDown = false;
    await pass(DURATION);
    assert.deepEqual([health.verdict('n').state, health.verdict('n').ready], ['dead', false]);
  });

  it('a Node that was created again with the same name starts without history and needs a new renewal', async () => {
    const { health, hosts, uids, renew, pass } = fleetOf();
    hosts.add('n');
    uids.set('n', 'old');
    renew('n');
    await pass(1);
    renew('n');
    assert.equal(health.verdict('n').state, 'alive');
    health.nodeChanged('n');
    assert.equal(health.verdict('n').state, 'alive', 'only its labels change: it is the same Node');
    uids.set('n', 'new');
    health.nodeChanged('n');
    assert.deepEqual([health.verdict('n').state, health.verdict('n').ready], ['unproven', false]);
    await pass(1);
    renew('n');
    assert.equal(health.verdict('n').state, 'alive');
  });

  it('a Lease that is deleted before its node, or never, causes no requests after the node is removed', async () => {
    const { health, state, leases, hosts, forgotten, renew, pass } = fleetOf();
    for (const node of ['gone', 'stays']) {
      hosts.add(node);
      renew(node);
    }
    leases.delete('gone');
    health.leaseChanged('gone', undefined);
    await pass(50);
    assert.ok(state.gets > 0, 'the Lease of an existing DPU host is requested');
    assert.equal(health.verdict('gone').state, 'dead');
    hosts.clear();
    for (const node of ['gone', 'stays']) health.nodeChanged(node);
    state.gets = 0;
    await pass(300);
    assert.deepEqual([state.gets, forgotten], [0, ['gone']]);
    health.leaseChanged('stays', undefined);
    assert.deepEqual(forgotten, ['gone', 'stays'], 'a Lease that is deleted after its node');
    health.stop();
  });

  it('a new replica uses the condition of the previous replica for the duration of a Lease', async () => {
    const { health, hosts, recorded, changes, renew, pass } = fleetOf();
    for (const node of ['lives', 'dies', 'dead', 'new']) {
      hosts.add(node);
      renew(node);
    }
    // Nodes arrive after the Leases.
    for (const node of ['lives', 'dies']) recorded.set(node, 'True');
    recorded.set('dead', 'False');
    for (const node of ['lives', 'dies', 'dead', 'new']) health.nodeChanged(node);
    const ready = () => ['lives', 'dies', 'dead', 'new'].filter((node) => health.verdict(node).ready);
    assert.deepEqual(ready(), ['lives', 'dies']);
    assert.ok(changes?.includes('lives unproven true'));
    await pass(9);
    renew('lives');
    renew('new');
    assert.deepEqual(ready(), ['lives', 'dies', 'new']);
    await pass(32);
    assert.deepEqual(ready(), ['lives', 'new'], 'a DPU that died with the previous replica is dead after the duration');
    assert.ok(changes?.includes('dies dead false'));
    health.stop();
  });
});
