import assert from 'node:assert/strict';
import { byCause } from '../../cli/doctor/causes.ts';
import { checkPods } from '../../cli/doctor/checks/pods.ts';
import { readFacts } from '../../cli/doctor/facts/facts.ts';
import { doctorData } from '../../cli/doctor/run.ts';
import { type Explanation, explain } from '../../cli/explain/explain.ts';
import { readSubject } from '../../cli/explain/subject.ts';
import type { ClusterAccess } from '../../cli/support/cluster.ts';
import { readTop, viewData } from '../../cli/top/read.ts';
import { readVerifyFacts, verifyMasks } from '../../cli/verify/survey.ts';
import { maskReason } from '../../cli/vm/run.ts';
import { shownPod, waits, watchedPod } from '../../console/server/pods.ts';
import { podContent } from '../../console/server/records.ts';
import { REASONS, type Reason } from '../../diagnosis/reasons.ts';
import { commandText, type Remedy } from '../../diagnosis/remedy.ts';
import { nodeTopologyStatus } from '../../kube/node-topology.ts';
import { createObjectsApi } from './objects-api.ts';
import { parseOutput } from './output-schema.ts';
import { NOW, STATE_TABLE, type StateCase } from './state-table.ts';

const TOPOLOGIES = '/apis/plumbline.dev/v1alpha1/nodetopologies';

/**
 * The command's access to the cluster of a case. A port-forward does not find the pod of the extender, or that pod
 * refuses the connection.
 */
const accessTo = ({ objects, extenderAway }: StateCase) => {
  const message = extenderAway === true ? 'connection refused' : 'Unexpected server response: 404';
  const getCurrentCluster = () => {
    throw new Error(message);
  };
  return {
    client: createObjectsApi(objects),
    config: { getCurrentCluster },
    namespace: 'tenants',
  } as unknown as ClusterAccess;
};

async function explained(one: StateCase): Promise<Explanation> {
  const access = accessTo(one);
  const [kind, name] = one.subject;
  const subject = await readSubject(access.client, { kind, namespace: 'tenants', name }, 'default');
  return explain(access, subject, {}, NOW);
}

const ids = (remedies: readonly Remedy[]) => remedies.map(({ id }) => id);
const isWrong = (reason: Reason) => ['broken', 'degraded'].includes(REASONS[reason].verdict);
const podOf = ({ objects }: StateCase) => objects['/api/v1/pods']?.[0];
const statusOf = ({ objects }: StateCase) => {
  const [topology] = objects[TOPOLOGIES] ?? [];
  return topology && nodeTopologyStatus.parse(topology['status']);
};
const isMasked = (one: StateCase) =>
  JSON.stringify(podOf(one)?.metadata['annotations'] ?? {}).includes('plumbline.dev/cpu-mask');

describe('the states of a VM in every output', () => {
  it('are at least thirty, and each reason of the table has one or a comment why not', () => {
    assert.ok(STATE_TABLE.length >= 30);
    const seen = new Set(STATE_TABLE.flatMap(({ reason, coarse }) => [reason, ...(coarse ? [coarse] : [])]));
    // The tests below have no cluster for these: a node to wait for, an image that does not arrive, no readable report.
    const elsewhere: Reason[] = ['Nominated', 'ContainerWaiting', 'OtherScheduler', 'Running'];
    const missing = (Object.keys(REASONS) as Reason[]).filter((one) => !seen.has(one) && !elsewhere.includes(one));
    assert.deepEqual(missing, []);
  });

  for (const one of STATE_TABLE) {
    const coarse = one.coarse ?? one.reason;
    describe(one.title, () => {
      it('explain', async () => {
        const explanation = await explained(one);
        parseOutput('explain', explanation);
        const { state, verdict, reason, remedies } = explanation;
        assert.deepEqual(
          { state, verdict, reason, remedies: ids(remedies) },
          { state: one.state, verdict: one.verdict, reason: one.reason, remedies: one.remedies },
        );
      });

      it('doctor', async () => {
        const report = checkPods(await readFacts(accessTo(one), NOW));
        const { findings } = report;
        parseOutput('doctor', doctorData([report], byCause(findings), undefined));
        const found = findings.flatMap(({ state }) => (state === undefined ? [] : [state]));
        const phase = (podOf(one)?.['status'] as { phase?: string } | undefined)?.phase;
        const looks = podOf(one) !== undefined && phase !== 'Failed' && phase !== 'Succeeded';
        assert.deepEqual(
          found.map(({ reason }) => reason),
          looks && isWrong(coarse) ? [coarse] : [],
        );
        if (found[0] === undefined) return;
        const { remedies } = await explained(one);
        const said = found[0].remedies.map(({ text }) => text);
        // explain checks every node, too.
        assert.deepEqual(
          said,
          remedies.slice(0, said.length).map(({ text }) => text),
        );
      });

      it('top', async () => {
        if (statusOf(one) === undefined) return;
        const { nodes, notes } = await readTop(accessTo(one).client, [], NOW);
        parseOutput('top', { nodes: nodes.map(viewData), notes });
        const owner = nodes[0]?.owners.find(({ name }) => name === 'tenants/fw');
        const owns = statusOf(one)?.assignments.some(({ podUID }) => podUID === 'pod-uid') === true;
        assert.equal(owner !== undefined, owns);
        if (owns) assert.equal(owner?.state?.reason, one.reason);
      });

      if (isMasked(one)) {
        it('verify', async () => {
          const verification = verifyMasks(await readVerifyFacts(accessTo(one).client, undefined, NOW));
          parseOutput('verify', verification);
          const { vms } = verification;
          const { reason, text, verdict } = await explained(one);
          assert.equal(vms.length, 1);
          if (!['running', 'paused'].includes(one.state)) return assert.equal(vms[0]?.running, undefined);
          assert.deepEqual(
            [vms[0]?.running?.reason, vms[0]?.running?.text, vms[0]?.running?.verdict],
            [reason, text, verdict],
          );
        });

        it('vm status, from the agent’s answer', () => {
          const [said] = statusOf(one)?.pinning ?? [];
          if (said === undefined || one.state === 'paused') return;
          const { verdict } = REASONS[maskReason(said.state)];
          assert.equal(verdict, one.verdict);
        });
      }

      it('the console', async () => {
        const pod = podOf(one);
        const shown = pod && shownPod(watchedPod.parse(pod));
        const refusal = statusOf(one)?.refusals?.[0]?.message;
        if (shown === undefined || !waits(shown, refusal)) {
          assert.ok(!['unscheduled', 'gated'].includes(one.state));
          return;
        }
        const record = podContent(shown, refusal);
        // By the pod alone. The state of the scheduler comes from the console's watches: test/console/feed.test.ts.
        const byPod: Partial<Record<Reason, Reason>> = {
          SchedulerAway: 'NotTried',
          ExtenderAway: 'NotTried',
          ExtenderNotAsked: 'NoNodeFits',
        };
        assert.equal(record.reason, byPod[coarse] ?? coarse);
        const { reason, text, state } = await explained(one);
        if (state !== 'unscheduled' && reason === record.reason) assert.equal(record.text, text);
      });
    });
  }

  it('no remedy names a VM if no VM created the instance', async () => {
    const bare = STATE_TABLE.find(({ title }) => title.startsWith('an instance that no VM made'))!;
    const { remedies } = await explained(bare);
    const commands = remedies.flatMap((one) => one.commands).map(commandText);
    assert.deepEqual(
      commands.filter((text) => /virtctl (restart|start|migrate)| patch virtualmachine /.test(text)),
      [],
    );
  });
});
