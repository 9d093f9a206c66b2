import assert from 'node:assert/strict';
import { byCause } from '../cli/doctor/causes.ts';
import { checkPods } from '../cli/doctor/checks/pods.ts';
import { readFacts } from '../cli/doctor/facts/facts.ts';
import { doctorData } from '../cli/doctor/run.ts';
import { type Explanation, explain } from '../cli/explain/explain.ts';
import { readSubject } from '../cli/explain/subject.ts';
import { readStatus } from '../cli/status/read.ts';
import type { ClusterAccess } from '../cli/support/cluster.ts';
import { readTop } from '../cli/top/read.ts';
import { viewData } from '../cli/top/view.ts';
import { verifyMasks } from '../cli/verify/run.ts';
import { createCommand } from '../cli/vm/command.ts';
import type { WireRecord } from '../console/data/wire.ts';
import { createCluster } from '../console/server/cluster.ts';
import { Feed } from '../console/server/feed.ts';
import { KINDS, type Kind } from '../console/server/kinds.ts';
import { REASONS, type Reason } from '../diagnosis/reasons.ts';
import { commandText, type Remedy } from '../diagnosis/remedies.ts';
import { nodeTopologyStatus } from '../kube/node-topology.ts';
import { createObjectsApi } from './cli/objects-api-stand-in.ts';
import { createMemoryApi } from './console/memory-api-stand-in.ts';
import { LAUNCHER, NOW, STATE_TABLE, type StateCase } from './diagnosis/state-table-fixture.ts';
import { eventually } from './support/eventually.ts';
import { silent } from './support/logger.ts';
import { parseOutput } from './support/output-schema.ts';
import { askAgent } from './support/run-command.ts';

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
  const config = { getCurrentCluster };
  return { client: createObjectsApi(objects), config, namespace: 'tenants' } as unknown as ClusterAccess;
};

async function explained(one: StateCase): Promise<Explanation> {
  const access = accessTo(one);
  const [kind, name] = one.subject;
  const subject = await readSubject(access.client, { kind, namespace: 'tenants', name }, 'default');
  return explain(access, subject, {}, NOW);
}

const ids = (remedies: readonly Remedy[]) => remedies.map(({ id }) => id);
const isWrong = (reason: Reason) => ['broken', 'degraded'].includes(REASONS[reason].verdict);
/** The launcher in which the guest runs or is to run. */
const podOf = ({ objects, guest = LAUNCHER }: StateCase) =>
  objects['/api/v1/pods']?.find(({ metadata }) => metadata.name === guest);
const statusOf = ({ objects }: StateCase) => {
  const [topology] = objects[TOPOLOGIES] ?? [];
  return topology && nodeTopologyStatus.parse(topology['status']);
};
const isMasked = (one: StateCase) =>
  JSON.stringify(podOf(one)?.metadata['annotations'] ?? {}).includes('plumbline.dev/cpu-mask');
/** What an output says that does not check every node for each pod. */
const coarseOf = ({ coarse, reason }: StateCase) => coarse ?? reason;

type Section = 'waiting' | 'notAsRequested' | 'migrations';

function sectionOf({ state, verdict, migration }: StateCase): Section | undefined {
  if (state === 'not-as-requested') return 'notAsRequested';
  if (state === 'migrating') {
    if (verdict === 'degraded' || verdict === 'broken' || migration?.faults === true) return 'notAsRequested';
    return verdict === 'waiting' ? 'migrations' : undefined;
  }
  if (state === 'paused') return verdict === 'stopped' ? undefined : 'waiting';
  return ['waiting', 'starting', 'failed'].includes(state) ? 'waiting' : undefined;
}

/** The console's record of the VM, after its watches have read the cluster. */
async function onThePage({ objects }: StateCase) {
  const api = createMemoryApi();
  for (const [kind, { path }] of Object.entries(KINDS)) {
    const list = objects[path.replace('/namespaces/plumbline-system', '')] ?? [];
    for (const object of list) api.put(kind as Kind, object);
  }
  const feed = new Feed();
  const options = { client: api.client, without: new Set<never>(), feed, log: silent };
  const cluster = createCluster({ ...options, nowSeconds: () => NOW / 1000 });
  const stopping = new AbortController();
  const ran = cluster.run(stopping.signal);
  const nodes = objects['/api/v1/nodes'] ?? [];
  const mute = nodes.filter((node) => JSON.stringify(node).includes('AgentReady","status":"False'));
  const isRead = () => cluster.missing === undefined && cluster.stale.size === mute.length;
  await eventually(isRead, 'the watches have read the cluster');
  const clock = Date.now;
  Date.now = () => NOW;
  try {
    feed.update(cluster, { leader: cluster.leader, notReady: [], version: '', letters: '', without: [] });
  } finally {
    Date.now = clock;
    stopping.abort();
    await ran;
  }
  const records = [...feed.records.values()].map((json) => JSON.parse(json) as WireRecord);
  const found = records.flatMap((record) => {
    const [kind, , content] = record;
    if (kind === 'p' && content !== undefined)
      return [{ waits: true, verdict: content.verdict, reason: content.reason }];
    return kind === 'r' && content !== undefined ? [{ waits: false, verdict: content[3], reason: content[4] }] : [];
  });
  assert.ok(found.length <= 1, JSON.stringify(found));
  return found[0];
}

/** A VM as its agent answers `plumbline vm status`. */
const AGENT_VM = {
  namespace: 'tenants',
  vmi: 'fw',
  podName: LAUNCHER,
  podUID: 'uid',
  pid: 6,
  container: '0-3',
  mask: '2',
  message: null,
  housekeeping: null,
  problems: [],
  threads: [],
};

describe('the states of a VM in every output', () => {
  it('are at least sixty, and each reason of the table has one or a comment why not', () => {
    assert.ok(STATE_TABLE.length >= 60);
    const seen = new Set(STATE_TABLE.flatMap(({ reason, coarse }) => [reason, ...(coarse ? [coarse] : [])]));
    // The tests below have no cluster for these: a node to wait for, an image that does not arrive, no readable report.
    const elsewhere: Reason[] = ['MigrationFailed', 'Nominated', 'ContainerWaiting', 'OtherScheduler', 'Running'];
    const missing = (Object.keys(REASONS) as Reason[]).filter((one) => !seen.has(one) && !elsewhere.includes(one));
    assert.deepEqual(missing, []);
  });

  for (const one of STATE_TABLE) {
    const coarse = coarseOf(one);
    describe(one.title, () => {
      it('explain', async () => {
        const explanation = await explained(one);
        parseOutput('explain', explanation);
        const { state, verdict, reason, remedies, node, migration } = explanation;
        assert.deepEqual(
          { state, verdict, reason, remedies: ids(remedies) },
          { state: one.state, verdict: one.verdict, reason: one.reason, remedies: one.remedies },
        );
        if (one.migration === undefined) return assert.equal(migration, undefined);
        const { phase, source, target } = one.migration;
        assert.deepEqual(
          { phase: migration?.phase, source: migration?.source, target: migration?.target, node },
          { phase, source, target, node: one.migration.node ?? source },
        );
      });

      it('status', async () => {
        const status = await readStatus(accessTo(one), undefined, NOW);
        parseOutput('status', status);
        const sections: Section[] = ['waiting', 'notAsRequested', 'migrations'];
        const listed = sections.flatMap((each) => status[each].map(({ name, reason }) => [each, name, reason]));
        const section = sectionOf(one);
        assert.deepEqual(listed, section === undefined ? [] : [[section, 'fw', one.status ?? coarse]]);
      });

      it('doctor', async () => {
        const report = checkPods(await readFacts(accessTo(one), NOW));
        const { findings } = report;
        parseOutput('doctor', doctorData([report], byCause(findings), undefined));
        const found = findings.flatMap(({ state }) => (state === undefined ? [] : [state]));
        const phase = (podOf(one)?.['status'] as { phase?: string } | undefined)?.phase;
        const looks = podOf(one) !== undefined && phase !== 'Failed' && phase !== 'Succeeded';
        const isFault = one.state === 'migrating' ? ['broken', 'degraded'].includes(one.verdict) : isWrong(coarse);
        const reasons = found.map(({ reason }) => reason);
        assert.deepEqual(reasons, looks && isFault ? [coarse] : []);
        if (found[0] === undefined) return;
        const { remedies } = await explained(one);
        const said = found[0].remedies.map(({ text }) => text);
        // explain checks every node, too.
        const same = remedies.map(({ text }) => text).filter((text) => said.includes(text));
        assert.deepEqual(said, same);
      });

      it('top', async () => {
        if (statusOf(one) === undefined) return;
        const { nodes, notes } = await readTop(accessTo(one).client, [], NOW);
        const owners = nodes.flatMap((node) => node.owners);
        parseOutput('top', { nodes: nodes.map(viewData), notes });
        const reports = (one.objects[TOPOLOGIES] ?? []).map((each) => nodeTopologyStatus.parse(each['status']));
        const assigned = new Set(reports.flatMap(({ assignments }) => assignments.map(({ podUID }) => podUID)));
        const states = owners.filter(({ name }) => name === 'tenants/fw').map(({ state }) => state?.reason);
        assert.deepEqual(states, assigned.has(`${podOf(one)?.metadata['uid']}`) ? [one.reason] : []);
        const targets = owners.filter(({ name }) => name === 'tenants/fw (migration target)');
        const isExpected = one.migration !== undefined && podOf(one)?.metadata['uid'] !== 'target-uid';
        assert.equal(targets.length, isExpected && assigned.has('target-uid') ? 1 : 0);
      });

      if (isMasked(one)) {
        it('verify', async () => {
          const verification = await verifyMasks(accessTo(one).client, undefined, NOW);
          parseOutput('verify', verification);
          const { vms } = verification;
          const { reason, text, verdict } = await explained(one);
          assert.equal(vms.length, 1);
          if (['waiting', 'starting', 'failed', 'stopping'].includes(one.state))
            return assert.equal(vms[0]?.running, undefined);
          const running = vms[0]?.running;
          assert.deepEqual([running?.reason, running?.verdict], [reason, verdict]);
          assert.ok(running?.text.startsWith(text), `${running?.text} does not begin with ${text}`);
        });

        it('vm status, from the agent’s answer', async () => {
          const [said] = statusOf(one)?.pinning ?? [];
          if (said === undefined || one.state === 'paused') return;
          const vm = { ...AGENT_VM, state: said.state };
          const answers = { '/vms': { vms: [vm], overlaps: [] } };
          const { stdout } = await askAgent(createCommand(), ['status', '-o', 'json'], answers);
          assert.equal(JSON.parse(stdout).vms[0].verdict, one.verdict);
        });
      }

      it('the console', async () => {
        const shown = await onThePage(one);
        const section = sectionOf(one);
        // The page lists VMs with dedicated CPUs or a mask, all that wait, and others only if there is something to say.
        if (one.reason === 'SharedCpus' || one.console === null) return assert.equal(shown, undefined);
        const isPlain = one.state === 'running' && !isMasked(one);
        if (isPlain || ['stopped', 'stopping'].includes(one.state)) return assert.equal(shown, undefined);
        assert.deepEqual(shown?.reason, one.console ?? coarse);
        assert.equal(shown.waits, section === 'waiting' && one.state !== 'paused');
      });
    });
  }

  it('no remedy names a VM if no VM created the instance', async () => {
    const bare = STATE_TABLE.find(({ title }) => title.startsWith('an instance that no VM made'))!;
    const { remedies } = await explained(bare);
    const commands = remedies.flatMap((remedy) => remedy.commands).map(commandText);
    assert.doesNotMatch(commands.join('\n'), /virtctl (restart|start|migrate)| patch virtualmachine /);
  });
});
