import assert from 'node:assert/strict';
import type { NodeStateFacts, VmFacts } from '../../diagnosis/facts.ts';
import { pausedGuest, type RunningNeeds, runningPod } from '../../diagnosis/running.ts';
import type { PlacementHost } from '../../model/placement/needs.ts';
import { needs, node, physnet, TUNNEL } from '../model/placement/fixture.ts';
import { line, VM } from './fixture.ts';

const HOST: PlacementHost = node();
const NODE: NodeStateFacts = { silent: false, assigned: ['2-3,6-7'], host: HOST };

const run = (facts: Partial<VmFacts>, wanted: RunningNeeds = needs('p', 4)) =>
  runningPod({ ...VM, ...facts }, 'n1', wanted).map(line);
const on = (changes: Partial<NodeStateFacts>, wanted?: RunningNeeds) => run({ node: { ...NODE, ...changes } }, wanted);
const WHERE = 'Aligned: on n1, CPUs 2-3,6-7 of NUMA node 0';
const WHOLE = 'Aligned: it shares no core with other pods';

describe('a running pod', () => {
  const near = needs('p', 4, [physnet('east'), physnet('bond')]);
  const SILENT = 'AgentSilent: on n1, whose agent has stopped reporting [check-agent]';
  const rows: readonly [string, readonly string[], readonly string[]][] = [
    ['is only running without facts about its node', run({}), ['Running: on n1']],
    ['has shared CPUs', on({}, needs('p', 0)), ['SharedCpus: on n1, on shared CPUs']],
    ['has whole cores', on({}), [WHERE, WHOLE]],
    ['has whole cores over all its containers', on({ assigned: ['2,6', '3,7'] }), [WHERE, WHOLE]],
    ['has whole cores near its networks', on({}, near), [WHERE, `${WHOLE}, and is near its networks`]],
    [
      'has whole cores of two NUMA nodes',
      on({ assigned: ['2-3', '8-9'] }),
      ['Aligned: on n1, CPUs 2-3,8-9 of NUMA nodes 0,1', WHOLE],
    ],
    [
      'has a silent agent',
      on({ silent: true }),
      [SILENT, ...[WHERE, WHOLE].map((text) => text.replace(': ', ': by its last report, '))],
    ],
  ];
  for (const [title, actual, expected] of rows) it(title, () => assert.deepEqual(actual, expected));

  for (const changes of [{ host: undefined }, { assigned: [] }, { assigned: [], silent: true }]) {
    it(`has CPUs that are not reported: ${JSON.stringify(changes)}`, () =>
      assert.deepEqual(on(changes), ['NotReported: on n1; no agent reports its CPUs [check-agent]']));
  }

  it('has lost its network by a restart of its DPU, unless that is dead now', () => {
    const networkLost = 'its DPU’s reboot at 2026-11-29T10:00:00Z';
    const lost = `NetworkLost: on n1, without a network since ${networkLost} [place-again, forget-restart]`;
    assert.deepEqual(on({ networkLost }), [lost, ...on({})]);
    assert.match(on({ networkLost, deadDpu: 'expired' })[0] ?? '', /^DPUNotReady/);
  });

  it('is far from each of its networks', () => {
    const networks = [physnet('west'), physnet('gone'), physnet('vague'), physnet('east'), TUNNEL];
    assert.deepEqual(on({}, needs('p', 4, networks)), [
      'NetworkElsewhere: interface if-west (physnet west) is on NUMA node 1, its CPUs are on 0 [place-again]',
      'NetworkGone: interface if-gone (physnet gone) is not on the node [bring-network-back]',
      'NetworkUnplaced: interface if-vague (physnet vague): its NUMA node is unknown [check-network-name]',
      'NetworkElsewhere: interface if-tunnel (the tunnel) is on NUMA node 1, its CPUs are on 0 [place-again]',
      WHERE,
    ]);
  });

  it('is far from a network if its guest has one NUMA node, and near if its guest spans both', () => {
    const reasons = (spansCells: boolean, assigned: string) =>
      on({ assigned: [assigned] }, needs('p', 4, [physnet('west')], { spansCells })).map((text) => text.split(':')[0]);
    assert.deepEqual(reasons(false, '2-3,8-9'), ['NetworkElsewhere', 'Aligned']);
    assert.deepEqual(reasons(true, '2-3,8-9'), ['Aligned', 'Aligned']);
    assert.deepEqual(reasons(true, '2-3,6-7'), ['NetworkElsewhere', 'Aligned']);
  });
});

describe('a pod with a CPU mask', () => {
  const wanted = { ...needs('p', 4), mask: { mask: '1:2', fixMismatch: false } } as unknown as RunningNeeds;
  const masked = (pinning: NodeStateFacts['pinning']) => on({ pinning }, wanted)[0];
  const PINNED = 'on n1, its vCPUs pinned by its CPU mask';
  const NOT = 'on n1, and its CPU mask is not applied';

  it('has the message of its agent, as a deviation or as what prevents it', () => {
    const fellBack = masked({ state: 'pinned', message: 'all instead' });
    assert.equal(fellBack, `MaskFellBack: ${PINNED}, with deviations: all instead`);
    const refused = masked({ state: 'refused', message: 'no CPU 99' });
    assert.equal(refused, `MaskNotApplied: ${NOT}: no CPU 99 [correct-mask]`);
    assert.equal(masked({ state: 'unpinned' }), `MaskNotApplied: ${NOT} [correct-mask]`);
    assert.equal(masked(undefined), `MaskNotReported: ${NOT}: its agent has not reported [check-agent]`);
  });

  it('has its mask reported rather than its CPUs', () => {
    const pinning = { state: 'pinned' } as const;
    assert.deepEqual(on({ pinning }, wanted), [`MaskApplied: ${PINNED}`]);
    assert.deepEqual(on({ pinning, silent: true }, wanted), [
      'AgentSilent: on n1, whose agent has stopped reporting [check-agent]',
      `MaskApplied: by its last report, ${PINNED}`,
    ]);
  });
});

describe('a VM with a paused guest', () => {
  const AT_START = { atStart: true, text: 'PausedByUser', since: '' };
  const pinned = { ...NODE, pinning: { state: 'pinned' } } as const;
  const paused = (facts: Partial<VmFacts>, pause: Partial<typeof AT_START> = {}) =>
    pausedGuest({ ...VM, ...facts }, 'n1', { ...AT_START, ...pause }).map(line);

  it('was paused by its user', () => {
    const expected = 'Paused: it is on n1 and does not run: PausedByUser [unpause]';
    assert.deepEqual(paused({ node: pinned }, { atStart: false }), [expected]);
    // Without facts about the node, the reason for the wait is unknown.
    assert.deepEqual(paused({}), [expected]);
    assert.deepEqual(paused({}, { atStart: false, text: '' }), ['Paused: it is on n1 and does not run [unpause]']);
  });

  it('stays paused without the extender, which resumes it', () => {
    const facts = { node: pinned, scheduler: { extenderAway: 'no answer' } };
    const text = 'it is on n1, its vCPUs are pinned, but nothing resumes it: no answer [bring-scheduler-back]';
    assert.deepEqual(paused(facts), [`ExtenderAway: ${text}`]);
    assert.deepEqual(paused({ ...facts, node: { ...pinned, silent: true } }), [
      `ExtenderAway: by its last report, ${text}`,
      'AgentSilent: on n1, whose agent has stopped reporting [check-agent]',
    ]);
  });

  it('is expected to resume within a minute of its pause', () => {
    const since = '2026-11-01T10:00:00Z';
    const stateAfter = (seconds: number) =>
      paused({ node: pinned, now: Date.parse(since) + seconds * 1000 }, { since })[0];
    const PINNED = 'it is on n1, its vCPUs are pinned, and the extender has not resumed it';
    assert.equal(stateAfter(60), `AboutToResume: ${PINNED} yet [wait]`);
    assert.equal(stateAfter(125), `NotResumed: ${PINNED}; paused for 2 min [read-extender-log]`);
  });

  for (const reason of ['NoSuchCpu', undefined]) {
    it(`is refused by its agent, with the reason: ${reason}`, () => {
      const node = { ...NODE, pinning: { state: 'refused', reason, message: 'no CPU 99' } } as const;
      const start = 'it is on n1 and does not run until its vCPUs are pinned; its agent refuses the mask';
      assert.deepEqual(paused({ node }), [`PinningRefused: ${start} (${reason ?? ''}): no CPU 99 [correct-mask]`]);
    });
  }
});
