import assert from 'node:assert/strict';
import { mock } from 'node:test';
import { parseMask } from '../../../model/cpu-mask/mask.ts';
import type { SelectingSpec } from '../../../model/launcher/node-selection.ts';
import type { MaskedVm } from '../../../model/placement/mask-fit.ts';
import { createMaskSurvey } from '../../../scheduler-plugin/controllers/mask-survey.ts';
import { turns } from '../../support/virtual-clock.ts';
import { extenderOf, statusOf } from '../extender-fixture.ts';

const four = statusOf({ cells: [{ id: 0, cpus: '0-3' }], cores: ['0', '1', '2', '3'], reserved: '0', physnets: [] });
function vm(
  mask: string,
  { fix = false, selection = {} }: { fix?: boolean; selection?: SelectingSpec } = {},
): MaskedVm {
  return { maskRequest: { mask: parseMask(mask), fixMismatch: fix }, fault: undefined, selection };
}
type MaskCounts = Parameters<Parameters<typeof createMaskSurvey>[0]['onCounted']>[0];

/** A node with 16 CPUs, one with four, and one that does not report. */
function surveyOf(vms: readonly MaskedVm[], { stale = false } = {}) {
  const { state } = extenderOf({
    nodes: { large: statusOf(), small: four, silent: undefined },
    flags: stale ? { large: 'stale' } : {},
  });
  const seen = { counted: [] as MaskCounts[], active: true };
  for (const name of ['large', 'small'])
    state.nodeChanged(name, { dpuHost: false, labels: new Map([['size', name[0]!]]) });
  const survey = createMaskSurvey({
    fleet: state.fleet,
    masked: () => vms,
    active: () => seen.active,
    onCounted: (counts) => void seen.counted.push(counts),
  });
  return { survey, state, seen };
}
describe('the count of masks that fit no node', () => {
  const bySize = (size: string): SelectingSpec => ({ nodeSelector: { size } });
  const counts: [string, MaskedVm[], MaskCounts][] = [
    ['a mask that may fall back to all CPUs', [vm('40', { fix: true }), vm('40')], { vms: 2, withoutNode: 1 }],
    ['a mask of a VM that selects the small node', [vm('9', { selection: bySize('s') })], { vms: 1, withoutNode: 1 }],
    [
      'an unreadable mask, and one that fits',
      [{ maskRequest: undefined, fault: 'CPU mask "1:" …', selection: {} }, vm('1')],
      { vms: 2, withoutNode: 1 },
    ],
  ];
  for (const [what, vms, count] of counts)
    it(`${what}: ${count.withoutNode} of ${count.vms}`, async () => {
      assert.deepEqual(await surveyOf(vms).survey.count(), count);
    });

  it('follows the reports, and excludes nodes with a silent agent', async () => {
    const { survey, state } = surveyOf([vm('9')]);
    assert.equal((await survey.count())?.withoutNode, 0);
    state.reportChanged('large', { ...statusOf(), assignments: [{ podUID: 'p', container: 'c', cpus: '9' }] });
    assert.equal((await survey.count())?.withoutNode, 1);
    assert.equal((await surveyOf([vm('9')], { stale: true }).survey.count())?.withoutNode, 1);
  });

  it('is empty on a replica that is not active', async () => {
    const { survey, seen } = surveyOf([vm('40')]);
    seen.active = false;
    const stop = new AbortController();
    const ended = survey.run(stop.signal);
    stop.abort();
    await ended;
    assert.deepEqual(seen.counted, [{ vms: 0, withoutNode: 0 }]);
  });
});
describe('the interval between counts of masks', () => {
  beforeEach(() => mock.timers.enable({ apis: ['setTimeout'] }));
  afterEach(() => {
    mock.timers.reset();
    mock.restoreAll();
  });

  it('is five seconds, or twenty times the duration of a long count', async () => {
    const clock = { now: 0, step: 0 };
    mock.method(performance, 'now', () => {
      clock.now += clock.step;
      return clock.now;
    });
    const { survey, seen } = surveyOf([]);
    const stop = new AbortController();
    const ended = survey.run(stop.signal);
    /** Counts after so many milliseconds. */
    const countsAfter = async (milliseconds: number) => {
      mock.timers.tick(milliseconds);
      await turns();
      return seen.counted.length;
    };
    assert.deepEqual([await countsAfter(0), await countsAfter(4999)], [1, 1]);
    // The next count takes half a second.
    clock.step = 500;
    assert.deepEqual([await countsAfter(1), await countsAfter(9999), await countsAfter(1)], [2, 2, 3]);
    stop.abort();
    await ended;
  });
});
