import assert from 'node:assert/strict';
import type { NodeStateFacts, VmFacts } from '../../diagnosis/facts.ts';
import { pausedGuest, type RunningNeeds, runningMaskedVm, runningPod } from '../../diagnosis/running.ts';
import type { PlacementHost } from '../../model/placement/needs.ts';
import { needs, node, physnet, TUNNEL } from '../model/placement/fixture.ts';
import { shown, VM } from './fixture.ts';

const HOST: PlacementHost = node();
const NODE: NodeStateFacts = { silent: false, assigned: ['2-3,6-7'], host: HOST };
const AGAIN = 'place-again';
const AGENT = 'check-agent';

const run = (facts: Partial<VmFacts>, wanted: RunningNeeds = needs('p', 4)) =>
  runningPod({ ...VM, ...facts }, 'n1', wanted).map(shown);
const on = (changes: Partial<NodeStateFacts>, wanted?: RunningNeeds) => run({ node: { ...NODE, ...changes } }, wanted);
const whole = (text: string) => ({ reason: 'Aligned', text, remedies: [] });

describe('a running pod', () => {
  it('is only running without facts about its node', () =>
    assert.deepEqual(run({}), [{ reason: 'Running', text: 'on n1', remedies: [] }]));

  it('has shared CPUs', () =>
    assert.deepEqual(on({}, needs('p', 0)), [{ reason: 'SharedCpus', text: 'on n1, on shared CPUs', remedies: [] }]));

  it('has CPUs that are not reported', () => {
    const expected = {
      reason: 'NotReported',
      text: 'on n1; no agent reports its CPUs',
      remedies: [AGENT],
    };
    assert.deepEqual(on({ host: undefined }), [expected]);
    assert.deepEqual(on({ assigned: [] }), [expected]);
    assert.deepEqual(on({ assigned: [], silent: true }), [expected]);
  });

  it('has whole cores, over all its containers', () => {
    const where = whole('on n1, CPUs 2-3,6-7 of NUMA node 0');
    assert.deepEqual(on({}), [where, whole('it shares no core with other pods')]);
    assert.deepEqual(on({ assigned: ['2,6', '3,7'] }), [where, whole('it shares no core with other pods')]);
    assert.deepEqual(on({}, needs('p', 4, [physnet('east'), physnet('bond')])), [
      where,
      whole('it shares no core with other pods, and is near its networks'),
    ]);
    assert.deepEqual(on({ assigned: ['2-3', '8-9'] }), [
      whole('on n1, CPUs 2-3,8-9 of NUMA nodes 0,1'),
      whole('it shares no core with other pods'),
    ]);
  });

  it('has a silent agent', () =>
    assert.deepEqual(on({ silent: true }), [
      {
        reason: 'AgentSilent',
        text: 'on n1, whose agent has stopped reporting',
        remedies: [AGENT],
      },
      whole('by its last report, on n1, CPUs 2-3,6-7 of NUMA node 0'),
      whole('by its last report, it shares no core with other pods'),
    ]));

  it('has lost its network by a restart of its DPU, unless that is dead now', () => {
    const networkLost = 'its DPU’s reboot at 2026-11-29T10:00:00Z';
    const [cause, ...others] = on({ networkLost });
    assert.deepEqual(cause, {
      reason: 'NetworkLost',
      text: `on n1, without a network since ${networkLost}`,
      remedies: [AGAIN, 'forget-restart'],
    });
    assert.deepEqual(others, on({}));
    assert.equal(on({ networkLost, deadDpu: 'expired' })[0]?.reason, 'DPUNotReady');
  });

  it('is far from each of its networks', () =>
    assert.deepEqual(
      on({}, needs('p', 4, [physnet('west'), physnet('gone'), physnet('vague'), physnet('east'), TUNNEL])),
      [
        {
          reason: 'NetworkElsewhere',
          text: 'interface if-west (physnet west) is on NUMA node 1, its CPUs are on 0',
          remedies: [AGAIN],
        },
        {
          reason: 'NetworkGone',
          text: 'interface if-gone (physnet gone) is not on the node',
          remedies: ['bring-network-back'],
        },
        {
          reason: 'NetworkUnplaced',
          text: 'interface if-vague (physnet vague): its NUMA node is unknown',
          remedies: ['check-network-name'],
        },
        {
          reason: 'NetworkElsewhere',
          text: 'interface if-tunnel (the tunnel) is on NUMA node 1, its CPUs are on 0',
          remedies: [AGAIN],
        },
        whole('on n1, CPUs 2-3,6-7 of NUMA node 0'),
      ],
    ));

  it('is far from a network if its guest has one NUMA node, and near if its guest spans both', () => {
    const reasons = (spansCells: boolean, assigned: string) =>
      on({ assigned: [assigned] }, needs('p', 4, [physnet('west')], { spansCells })).map(({ reason }) => reason);
    assert.deepEqual(reasons(false, '2-3,8-9'), ['NetworkElsewhere', 'Aligned']);
    assert.deepEqual(reasons(true, '2-3,8-9'), ['Aligned', 'Aligned']);
    assert.deepEqual(reasons(true, '2-3,6-7'), ['NetworkElsewhere', 'Aligned']);
  });
});

describe('a pod with a CPU mask', () => {
  const masked = (pinning: NodeStateFacts['pinning']) =>
    shown(runningMaskedVm({ ...VM, node: { ...NODE, ...(pinning && { pinning }) } }, 'n1', undefined)[0]!);
  const PINNED = 'on n1, its vCPUs pinned by its CPU mask';
  const NOT = 'on n1, and its CPU mask is not applied';

  it('has the message of its agent, as a deviation or as what prevents it', () => {
    assert.equal(masked({ state: 'pinned', message: 'all instead' }).text, `${PINNED}, with deviations: all instead`);
    assert.equal(masked({ state: 'refused', message: 'no CPU 99' }).text, `${NOT}: no CPU 99`);
    assert.equal(masked({ state: 'unpinned' }).text, NOT);
    assert.equal(masked(undefined).text, `${NOT}: its agent has not reported`);
  });

  it('is not reported without facts about its node', () =>
    assert.equal(shown(runningMaskedVm({ ...VM, node: NODE }, 'n1', undefined)[0]!).reason, 'MaskNotReported'));

  it('has its mask reported rather than its CPUs', () => {
    const wanted = { ...needs('p', 4), mask: { mask: '1:2', fixMismatch: false } } as unknown as RunningNeeds;
    assert.deepEqual(
      on({ pinning: { state: 'pinned' } }, wanted).map(({ reason }) => reason),
      ['MaskApplied'],
    );
    assert.deepEqual(
      on({ pinning: { state: 'pinned' }, silent: true }, wanted).map(({ reason, text }) => [reason, text]),
      [
        ['AgentSilent', 'on n1, whose agent has stopped reporting'],
        ['MaskApplied', `by its last report, ${PINNED}`],
      ],
    );
  });
});

describe('a VM with a paused guest', () => {
  const paused = (atStart: boolean, text: string, nodeFacts?: Partial<NodeStateFacts>) =>
    shown(
      pausedGuest({ ...VM, ...(nodeFacts && { node: { ...NODE, ...nodeFacts } }) }, 'n1', {
        atStart,
        text,
        since: '',
      })[0]!,
    );
  const UNPAUSE = 'unpause';

  it('was paused by its user', () => {
    const expected = { reason: 'Paused', text: 'it is on n1 and does not run: PausedByUser', remedies: [UNPAUSE] };
    assert.deepEqual(paused(false, 'PausedByUser', { pinning: { state: 'pinned' } }), expected);
    // Without facts about the node, the reason for the wait is unknown.
    assert.deepEqual(paused(true, 'PausedByUser'), expected);
    assert.deepEqual(paused(false, ''), { ...expected, text: 'it is on n1 and does not run' });
  });

  it('stays paused without the extender, which resumes it', () => {
    const node = { ...NODE, pinning: { state: 'pinned' as const } };
    const facts = { ...VM, node, scheduler: { extenderAway: 'no answer' } };
    const [paused] = pausedGuest(facts, 'n1', { atStart: true, text: 'PausedByUser', since: '' });
    assert.equal(paused?.reason, 'ExtenderAway');
    assert.equal(paused?.text, 'it is on n1, its vCPUs are pinned, but nothing resumes it: no answer');
    const silent = pausedGuest({ ...facts, node: { ...node, silent: true } }, 'n1', {
      atStart: true,
      text: 'PausedByUser',
      since: '',
    });
    assert.deepEqual(
      silent.map(({ reason, text }) => [reason, text]),
      [
        ['ExtenderAway', `by its last report, ${paused?.text}`],
        ['AgentSilent', 'on n1, whose agent has stopped reporting'],
      ],
    );
  });

  it('is expected to resume within a minute of its pause', () => {
    const since = '2026-11-01T10:00:00Z';
    const stateAfter = (seconds: number) => {
      const now = Date.parse(since) + seconds * 1000;
      const facts = { ...VM, node: { ...NODE, pinning: { state: 'pinned' as const } }, now };
      return pausedGuest(facts, 'n1', { atStart: true, text: 'PausedByUser', since })[0]!;
    };
    assert.equal(stateAfter(60).reason, 'AboutToResume');
    const { reason, text } = stateAfter(125);
    assert.equal(reason, 'NotResumed');
    assert.equal(text, 'it is on n1, its vCPUs are pinned, and the extender has not resumed it; paused for 2 min');
  });

  for (const [reason, named] of [
    ['NoSuchCpu', 'NoSuchCpu'],
    [undefined, ''],
  ] as const) {
    it(`is refused by its agent, with the reason: ${reason}`, () => {
      const cause = paused(true, 'PausedByUser', { pinning: { state: 'refused', reason, message: 'no CPU 99' } });
      const start = 'it is on n1 and does not run until its vCPUs are pinned; its agent refuses the mask';
      assert.deepEqual([cause.reason, cause.text], ['PinningRefused', `${start} (${named}): no CPU 99`]);
    });
  }
});
