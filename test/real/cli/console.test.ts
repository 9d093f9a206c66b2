import assert from 'node:assert/strict';
import type { ExtenderExplanation } from '../../../console/data/wire.ts';
import { startConsole } from '../../cli/console-process.ts';
import { buildCli } from '../../cli/run.ts';
import { listen } from '../../console/events.ts';
import { needs } from '../../support/parts.ts';
import { report, topologyOf } from '../scheduler/stage.ts';
import { userOfGuide } from './role-of-guide.ts';
import { NODE, type SidecarStage, startSidecarStage } from './sidecar-stage.ts';

/** The page from a real API server's watches, with explanations over a port-forward to the extender's pod. */
describe('plumbline console on a real API server, with the permissions of the guide', function () {
  needs('controlPlane');
  needs('kubectl');
  needs('root');
  this.timeout(300_000);
  let stage: SidecarStage;
  before(async () => {
    buildCli();
    stage = await startSidecarStage();
    const limits = { cpu: '4', memory: '64Mi', 'devices.kubevirt.io/kvm': '1' };
    await stage.plane.create({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'waits', namespace: 'default' },
      spec: {
        schedulerName: 'plumbline-scheduler',
        nodeSelector: { 'kubernetes.io/hostname': NODE },
        containers: [{ name: 'compute', image: 'x', resources: { limits } }],
      },
    });
  });
  after(() => stage?.stop());

  /** The owners of the node's CPUs in its record, as JSON. */
  const ownersOf = (data: string) =>
    new RegExp(`\\["n","${NODE}",\\{.*?"owners":\\[(.*?)\\],"inFlight"`).exec(data)?.[1];

  it('shows changes of nodes, the leader and a waiting pod, and the extender’s answer over a port-forward', async () => {
    const { url, end, stderr } = await startConsole(await userOfGuide(stage.plane, 'viewer'));
    const page = await listen(`${url}events`);
    await page.until(({ event }) => event === 'ready');
    await page.until(({ data }) => /"leader":"plumbline-scheduler-/.test(data));
    await page.until(({ data }) => ownersOf(data)?.includes('["x","compute","1-7,9-15",0]') === true);
    await page.until(({ data }) => /"name":"waits".*"unscheduled":"0\/2 nodes are available: /.test(data));
    const answer = await fetch(`${url}explain?pod=default/waits`);
    assert.equal(answer.status, 200, await answer.clone().text());
    const { nodes, groups, lastCall } = (await answer.json()) as ExtenderExplanation;
    assert.deepEqual(
      nodes.map(([node, group]) => [node, groups[group]?.fits]),
      [
        [NODE, false],
        ['unreported', true],
      ],
    );
    assert.equal(lastCall?.passed, 0);
    await report(stage.plane.client, NODE, topologyOf({ assignments: [] }));
    await page.until(({ data }) => ownersOf(data) === '');
    assert.equal(await end('SIGINT'), 0);
    assert.equal(stderr(), '');
  });
});
