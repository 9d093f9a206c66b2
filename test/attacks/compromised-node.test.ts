import assert from 'node:assert/strict';
import { existsSync, statSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { KubeClient } from '../../kube/client.ts';
import type { NodeTopologyStatus } from '../../kube/node-topology.ts';
import { DPU_READY_CONDITION } from '../../model/names.ts';
import { createRandom, type Random } from '../lab/random.ts';
import { nodeCondition } from '../real/scheduler/stage.ts';
import { readMetric } from '../support/daemon-metrics.ts';
import { skipFor } from '../support/parts.ts';
import { until } from '../support/until.ts';
import { GATE, longestDelay, MERGE, peakMiB, processorMs, type Stage, startStage, TOPOLOGIES } from './stage.ts';

/** Random reports between two checks of the event loops. */
const BATCH = 50;
/** PLUMBLINE_SLOW_TESTS=1: as many random reports as documented; otherwise a part of them. */
const RANDOM_REPORTS = process.env['PLUMBLINE_SLOW_TESTS'] === '1' ? 10_000 : 150;
/** On a busy machine. */
const SECONDS_PER_REPORT = 0.5;
const LEASES = '/apis/coordination.k8s.io/v1/namespaces/plumbline-system/leases';
const APPLY = { query: { fieldManager: 'rogue', force: true } };
/** Root on one node, or the token of its agent. */
describe('attacks by a compromised node', function () {
  this.timeout(600_000);
  let stage: Stage;
  let rogue: KubeClient;
  before(async () => {
    stage = await startStage();
    rogue = await stage.as({ kind: 'node', node: stage.rogue });
    const { metadata } = (await stage.admin.get(`/api/v1/nodes/${stage.rogue}`)) as { metadata: { uid: string } };
    const owner = { apiVersion: 'v1', kind: 'Node', name: stage.rogue, uid: metadata.uid };
    await rogue.create(TOPOLOGIES, topologyOf({ ownerReferences: [owner] })).catch(() => undefined);
    await report({});
    await stage.serve();
  });
  after(() => stage?.stop());

  const topologyOf = (metadata: object, status?: object) => ({
    apiVersion: 'plumbline.dev/v1alpha1',
    kind: 'NodeTopology',
    metadata: { name: stage.rogue, ...metadata },
    ...(status && { status }),
  });
  const report = async (lie: Partial<NodeTopologyStatus> | Record<string, unknown>) => {
    const object = topologyOf({}, { ...stage.truth, assignments: [], conditions: [], ...lie });
    await rogue.patch(`${TOPOLOGIES}/${stage.rogue}/status`, 'application/apply-patch+yaml', object, APPLY);
  };
  const quarantined = async () =>
    (await readMetric(stage.extender.probePort, 'plumbline_extender_quarantined_reports')) === 1;
  const quarter = (n: number) => [{ id: 0, cpus: `0-${n - 1}` }];

  const lies: [string, Record<string, unknown>][] = [
    ['one core of 1,024 CPUs', { cells: quarter(1024), cores: ['0-1023'] }],
    [
      '400 overlapping cores of 65,536 CPUs',
      { cells: [{ id: 0, cpus: '0-65535' }], cores: Array.from({ length: 400 }, () => '0-65535') },
    ],
    ['a physnet with an invalid resource name', { physnets: [{ name: 'x'.repeat(253), cells: '0' }] }],
  ];
  for (const [name, lie] of lies)
    it(`${name}: is quarantined with little CPU time, and changes no other VM`, async () => {
      const before = processorMs(stage.extender);
      await report(lie);
      await until('the report to be quarantined', quarantined);
      const spent = processorMs(stage.extender) - before;
      assert.ok(spent < 300, `${spent} ms of processor time, watching included`);
      await stage.serve();
      const ready = await fetch(`http://127.0.0.1:${stage.extender.probePort}/readyz`, {
        signal: AbortSignal.timeout(1000),
      });
      assert.equal(ready.status, 200);
      await report({});
      await until('the report to count again', async () => !(await quarantined()));
    });

  it('its own heartbeat with a duration of 2147483647 s sets no timer that fires at once', async () => {
    const path = `${LEASES}/plumbline-agent-${stage.rogue}`;
    const spec = {
      holderIdentity: stage.rogue,
      leaseDurationSeconds: 2_147_483_647,
      renewTime: new Date().toISOString().replace('Z', '000Z'),
    };
    const before = processorMs(stage.extender);
    await stage.admin.patch(path, MERGE, { spec }).catch(() => undefined);
    await delay(2000);
    const spent = processorMs(stage.extender) - before;
    assert.ok(spent < 1000, `${spent} ms in 2 s`);
    await stage.serve();
  });

  it('random reports that the definition allows cause no long task and no other verdict', async function () {
    // The sandbox keeps the history of its objects in the memory of this process.
    const reports = stage.ground === 'real' ? RANDOM_REPORTS : 100;
    this.timeout(600_000 + reports * SECONDS_PER_REPORT * 1000);
    const random = createRandom(7);
    const busy = async () => Math.max(await longestDelay(stage.extender), await longestDelay(stage.webhook));
    await busy();
    // The effect of a busy machine on an honest report is not the attacker's.
    const honestDelay = async () => {
      for (let i = 0; i < 100; i++) await report({ pmdCPUs: `${i % 8}` });
      return busy();
    };
    let honestly = await honestDelay();
    const isLong = (delay: number) => delay >= Math.max(100, 4 * honestly);
    let sent = 0;
    let refused = 0;
    let busiest = 0;
    const send = async (lies: readonly Record<string, unknown>[]) => {
      for (const lie of lies)
        await report(lie).then(
          () => sent++,
          () => refused++,
        );
      return busy();
    };
    for (let accepted = 0; accepted < reports; ) {
      const lies = Array.from({ length: BATCH }, (_, i) => {
        const lie = randomReport(random);
        // Every tenth report matches the hardware, so that the worst accepted ones are included.
        return i % 10 === 0 ? onHardware(lie, stage.truth) : lie;
      });
      // The same reports cause a long task again; a pause of a busy machine does not repeat.
      const already = sent;
      let batch = await send(lies);
      assert.ok(sent > already, `${refused} reports refused one after the other`);
      accepted += sent - already;
      for (let again = 0; again < 3 && isLong(batch); again++) {
        honestly = Math.max(honestly, await honestDelay());
        batch = Math.min(batch, await send(lies));
      }
      busiest = Math.max(busiest, batch);
      await stage.serve();
    }
    console.log(
      `      ${sent} accepted by the API server, ${refused} refused; event loops busy for ${busiest.toFixed(0)} ms at most, ${honestly.toFixed(0)} ms by honest ones`,
    );
    assert.ok(!isLong(busiest), `an event loop was busy for ${busiest} ms, ${honestly} before`);
    assert.ok(peakMiB(stage.extender) < 256 && peakMiB(stage.webhook) < 256);
    await report({});
    await stage.serve();
  });
});
const DPU_LEASES = '/apis/coordination.k8s.io/v1/namespaces/ovn-kubernetes/leases';
/** The account of a DPU, and any account that can write its Lease. */
describe('attacks by a compromised DPU', function () {
  this.timeout(300_000);
  let stage: Stage;
  let lease: string;
  let dpu: KubeClient;
  before(async () => {
    stage = await startStage();
    lease = `${DPU_LEASES}/ovn-dpu-${stage.rogue}`;
    dpu = await stage.as({ kind: 'dpu', node: stage.rogue });
    await stage.admin.patch(`/api/v1/nodes/${stage.rogue}`, MERGE, {
      metadata: { labels: { 'k8s.ovn.org/dpu-host': '' } },
    });
    const spec = { holderIdentity: 'ovnkube-dpu-node', leaseDurationSeconds: 3, renewTime: time() };
    const metadata = { name: `ovn-dpu-${stage.rogue}` };
    await stage.admin
      .create(DPU_LEASES, { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata, spec })
      .catch(() => stage.admin.patch(lease, MERGE, { spec }));
  });
  after(() => stage?.stop());

  const time = () => new Date().toISOString().replace('Z', '000Z');
  const renew = () => dpu.patch(lease, MERGE, { spec: { renewTime: time() } });
  const condition = async () => (await nodeCondition(stage.admin, stage.rogue, DPU_READY_CONDITION))?.status;

  it('the DPU is alive while it renews, and dead when it stops', async () => {
    for (let i = 0; i < 3; i++) {
      await renew();
      await delay(500);
    }
    await until('the DPU to count as alive', async () => {
      await renew();
      return (await condition()) === 'True';
    });
    await until('the DPU to count as dead', async () => (await condition()) === 'False');
  });

  it('a longer duration, written while it is dead, revives nothing and causes no flood of requests', async () => {
    for (const leaseDurationSeconds of [600, 1_000_000, 2_147_483_647]) {
      await longestDelay(stage.extender);
      const before = processorMs(stage.extender);
      await stage.admin.patch(lease, MERGE, { spec: { leaseDurationSeconds } });
      await delay(2000);
      assert.equal(await condition(), 'False', `${leaseDurationSeconds} s`);
      const spent = processorMs(stage.extender) - before;
      // 334 requests per second would take most of it.
      assert.ok(spent < 1000, `${spent} ms of processor time in 2 s`);
      await stage.serve();
    }
    await stage.admin.patch(lease, MERGE, { spec: { leaseDurationSeconds: 3 } });
  });
});
/** The memory limit of the agent, MiB. */
const LIMIT = 160;
/** A process on a node that can reach the agent's socket: root, or one with access through a wrong mode. */
describe('attacks by a process on the node', function () {
  this.timeout(300_000);
  let stage: Stage;
  const sockets: Socket[] = [];
  before(async () => {
    stage = await startStage();
  });
  after(() => stage?.stop());
  afterEach(() => {
    for (const socket of sockets.splice(0)) socket.destroy();
  });

  const open = (path: string): Socket => {
    const socket = connect(path).on('error', () => undefined);
    sockets.push(socket);
    return socket;
  };
  const ready = async (probePort: number) =>
    (await fetch(`http://127.0.0.1:${probePort}/readyz`, { signal: AbortSignal.timeout(2000) })).status;

  it('the socket of the gate is its owner’s alone', function () {
    if (!stage.agent || !existsSync(stage.agent.gateSocket)) skipFor(GATE, this);
    assert.equal(statSync(stage.agent!.gateSocket).mode & 0o077, 0);
  });

  const floods: [string, (path: string) => void][] = [
    ['1,000 times a megabyte of garbage', (path) => void open(path).write(Buffer.alloc(1 << 20, 0x5b))],
    ['1,000 requests about missing pods', (path) => void open(path).write('ADD ns pod uid container\n')],
  ];
  for (const [name, flood] of floods)
    it(`${name}: the agent stays within its memory limit, and answers`, async function () {
      const { agent } = stage;
      if (!agent || !existsSync(agent.gateSocket)) return skipFor(GATE, this);
      const before = processorMs(agent);
      for (let i = 0; i < 1000; i++) flood(agent.gateSocket);
      await delay(1500);
      console.log(
        `      ${processorMs(agent) - before} ms of processor time, at most ${peakMiB(agent).toFixed(0)} of ${LIMIT} MiB`,
      );
      assert.ok(peakMiB(agent) < LIMIT, `${peakMiB(agent)} MiB`);
      assert.equal(await ready(agent.probePort), 200);
      await stage.serve();
    });
});

/** A report of random content within the limits of the definition; nearly all of them are contradictory. */
function randomReport(random: Random): Record<string, unknown> {
  const upTo = (most: number) => random.below(most + 1);
  const range = () => {
    const first = upTo(8300);
    return random.chance(0.5) ? `${first}` : `${first}-${first + upTo(random.chance(0.5) ? 15 : 8000)}`;
  };
  const list = (most: number) => Array.from({ length: 1 + upTo(most) }, range).join(',');
  const many = <T>(most: number, one: (i: number) => T) => Array.from({ length: upTo(most) }, (_, i) => one(i));
  const group = (i: number) => ({ id: random.chance(0.25) ? upTo(65_535) : i, cpus: list(20) });
  // The maximum of the definition: 65,536 characters of CPU lists in total, with at most ten characters per range.
  const containers = upTo(random.chance(0.25) ? 2048 : 16);
  const ranges = Math.min(200, Math.floor(6500 / Math.max(1, containers)));
  const assignments = Array.from({ length: containers }, (_, i) => ({
    podUID: `u${i}`,
    container: 'c',
    cpus: list(Math.max(0, ranges - 1)),
  }));
  return {
    cells: many(32, group),
    cores: many(random.chance(0.25) ? 2048 : 32, () => list(4).slice(0, 64)),
    reserved: list(10),
    sockets: many(64, group),
    uncores: many(random.chance(0.25) ? 1024 : 8, group),
    cpuManager: {
      policy: random.oneOf(['static', 'none', 'x']),
      options: { 'full-pcpus-only': random.oneOf(['true', 'false']) },
    },
    topologyManager: {
      policy: random.oneOf(['best-effort', 'restricted', 'single-numa-node', 'none']),
      scope: random.oneOf(['pod', 'container']),
    },
    assignments,
    physnets: many(256, (i) => ({ name: `p${i}`, cells: list(8) })),
    pmdCPUs: list(100),
  };
}
/** The same on consistent hardware, so that contradictions are found in later checks. */
function onHardware(report: Record<string, unknown>, truth: NodeTopologyStatus): Record<string, unknown> {
  const { cells, cores, reserved, kubeletVersion } = truth;
  return { ...report, cells, cores, reserved, kubeletVersion, sockets: undefined, uncores: undefined };
}
