import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import type { KubeClient } from '../../kube/client.ts';
import type { NodeTopologyStatus } from '../../kube/node-topology.ts';
import { createRandom } from '../lab/random.ts';
import { onHardware, randomReport } from '../support/random-report.ts';
import { until } from '../support/until.ts';
import { longestDelay, MERGE, metricOf, peakMiB, processorMs, type Stage, startStage, TOPOLOGIES } from './stage.ts';

/** Random reports between two checks of the event loops. */
const BATCH = 50;
/** PLUMBLINE_SLOW_TESTS=1: as many random reports as documented; otherwise a part of them. */
const RANDOM_REPORTS = process.env['PLUMBLINE_SLOW_TESTS'] === '1' ? 10_000 : 500;
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
    const object = {
      apiVersion: 'plumbline.dev/v1alpha1',
      kind: 'NodeTopology',
      metadata: { name: stage.rogue, ownerReferences: [owner] },
    };
    await rogue.create(TOPOLOGIES, object).catch(() => undefined);
    await report({});
    await stage.serve();
  });
  after(() => stage?.stop());

  const report = async (lie: Partial<NodeTopologyStatus> | Record<string, unknown>) => {
    const object = {
      apiVersion: 'plumbline.dev/v1alpha1',
      kind: 'NodeTopology',
      metadata: { name: stage.rogue },
      status: { ...stage.truth, assignments: [], conditions: [], ...lie },
    };
    await rogue.patch(`${TOPOLOGIES}/${stage.rogue}/status`, 'application/apply-patch+yaml', object, APPLY);
  };
  const quarantined = async () => (await metricOf(stage.extender, 'plumbline_extender_quarantined_reports')) === 1;
  const quarter = (n: number) => [{ id: 0, cpus: `0-${n - 1}` }];

  const lies: [string, Record<string, unknown>][] = [
    ['one core of 1,024 CPUs', { cells: quarter(1024), cores: ['0-1023'] }],
    [
      '400 overlapping cores of 65,536 CPUs',
      { cells: [{ id: 0, cpus: '0-65535' }], cores: Array.from({ length: 400 }, () => '0-65535') },
    ],
    ['a physnet with an invalid resource name', { physnets: [{ name: 'x'.repeat(253), cells: '0' }] }],
  ];
  for (const [name, lie] of lies) {
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
  }

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
    for (let i = 0; i < 100; i++) await report({ pmdCPUs: `${i % 8}` });
    const honestly = await busy();
    const limit = Math.max(100, 4 * honestly);
    let sent = 0;
    let refused = 0;
    let busiest = 0;
    const send = async (lies: readonly Record<string, unknown>[]) => {
      for (const lie of lies) {
        await report(lie).then(
          () => sent++,
          () => refused++,
        );
      }
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
      for (let again = 0; again < 2 && batch >= limit; again++) batch = Math.min(batch, await send(lies));
      busiest = Math.max(busiest, batch);
      await stage.serve();
    }
    console.log(
      `      ${sent} accepted by the API server, ${refused} refused; event loops busy for ${busiest.toFixed(0)} ms at most, ${honestly.toFixed(0)} ms by honest ones`,
    );
    assert.ok(busiest < limit, `an event loop was busy for ${busiest} ms, ${honestly} before`);
    assert.ok(peakMiB(stage.extender) < 256 && peakMiB(stage.webhook) < 256);
    await report({});
    await stage.serve();
  });
});
