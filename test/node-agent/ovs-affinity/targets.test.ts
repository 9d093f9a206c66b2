import assert from 'node:assert/strict';
import { mock } from 'node:test';
import { type AssignmentsView, UNKNOWN_VIEW } from '../../../node-agent/assignments/view.ts';
import type { CpuTarget } from '../../../node-agent/ovs-affinity/process-affinity.ts';
import { allowedCpus, Confirmation, Targets, type TargetsDeps } from '../../../node-agent/ovs-affinity/targets.ts';
import type { ContainerCpus } from '../../../node-agent/processes/cgroup-tree.ts';
import { cpus } from './stage.ts';

const viewOf = (free: string | undefined, owned = '', holds: readonly string[] = []): AssignmentsView => ({
  ...UNKNOWN_VIEW,
  free: free === undefined ? undefined : cpus(free),
  owned: cpus(owned),
  holds: [...holds],
});
const NONE = cpus('');

describe('the CPUs that Open vSwitch may use', () => {
  const allowed = (view: AssignmentsView, pmd = '', isolated = '', vacated = '') => {
    const allowed = allowedCpus(view, { pmd: cpus(pmd), isolated: cpus(isolated), vacated: cpus(vacated) });
    return [allowed.cpus?.toString(), ...allowed.why];
  };

  it('are the free ones without the excluded ones, each with a reason', () => {
    assert.deepEqual(allowed(viewOf('0-7')), ['0-7']);
    assert.deepEqual(allowed(viewOf('0-5', '6-7'), '0', '1-2', '3,6'), [
      '4-5',
      '6-7: owned by containers',
      '3: vacated for a container that starts',
      '0: poll mode drivers',
      '1-2: isolated',
    ]);
  });

  it('include isolated CPUs and those of poll mode drivers only if there are no others', () => {
    assert.deepEqual(allowed(viewOf('0-3'), '0', '1-3'), ['1-3', '0: poll mode drivers']);
    assert.deepEqual(allowed(viewOf('0-3'), '0-3', ''), ['0-3', '0-3: poll mode drivers']);
    assert.deepEqual(allowed(viewOf('0-3'), '', '8-9'), ['0-3'], 'isolated CPUs that are not free');
  });

  it('are undefined with a reason while the owners are unknown; a partial view gives a reason', () => {
    assert.deepEqual(allowed(viewOf(undefined, '1', ['a', 'b']), '0'), [
      undefined,
      '1: owned by containers',
      '0: poll mode drivers',
      'only avoiding owned CPUs, because some owners are unknown: a; b',
    ]);
    const why = 'using no more CPUs, because some owners are unknown: a';
    assert.deepEqual(allowed(viewOf('0-3', '', ['a'])), ['0-3', why]);
  });
});

describe('the target CPUs from pass to pass', () => {
  let seconds: number;
  let running: ContainerCpus | undefined;
  let isolated: string;
  let pmdMask: string;
  let grown: number;
  let targets: Targets;

  const make = (changes: Partial<TargetsDeps> = {}) =>
    new Targets(
      {
        growthDelay: 3600,
        isolated: () => cpus(isolated),
        pmdMask: () => cpus(pmdMask),
        machine: () => cpus('0-15'),
        containers: () => running,
        nowSeconds: () => seconds,
        ...changes,
      },
      () => void grown++,
    );
  beforeEach(() => {
    seconds = 0;
    running = { guaranteed: [], others: [] };
    isolated = '';
    pmdMask = '';
    grown = 0;
    targets = make();
  });
  afterEach(() => {
    targets.reset();
    mock.timers.reset();
  });

  const displayed = (target: CpuTarget) =>
    'only' in target ? `${target.only}` : `avoid ${target.avoid}, else ${target.otherwise}`;
  const goal = (view: AssignmentsView, mayGrow = false, pmd = '') =>
    displayed(targets.target(view, cpus(pmd), mayGrow));

  it('start with the first set, leave owned CPUs at once and take free ones later', () => {
    assert.equal(goal(viewOf('0-7', '8-15')), '0-7');
    assert.equal(String(targets.lastTarget), '0-7');
    assert.equal(goal(viewOf('0-3', '4-15')), '0-3');
    assert.equal(goal(viewOf('0-7', '8-15')), '0-3');
    assert.deepEqual(targets.why, ['8-15: owned by containers', '4-7: free, taken within 3600 s']);
    assert.equal(goal(viewOf('0-7', '8-15'), true), '0-7');
    assert.deepEqual(targets.why, ['8-15: owned by containers']);
    assert.equal(goal(viewOf('8-9', '0-7')), '8-9', 'no CPU of the last set is left');
    assert.equal(grown, 0);
  });

  it('take free CPUs at once with a delay of 0', () => {
    targets = make({ growthDelay: 0 });
    goal(viewOf('0-3', '4-7'));
    assert.equal(goal(viewOf('0-7')), '0-7');
  });

  it('grow after the delay, unless the free CPUs were lost again', () => {
    mock.timers.enable({ apis: ['setTimeout'] });
    targets = make({ growthDelay: 5 });
    const grownAfter = (change: () => void) => {
      goal(viewOf('0-3', '4-7'), true);
      goal(viewOf('0-7'));
      change();
      mock.timers.tick(4999);
      const early = grown;
      mock.timers.tick(1);
      return [early, grown];
    };
    for (const [what, change, expected] of [
      ['nothing', () => {}, [0, 1]],
      ['they have an owner', () => void goal(viewOf('0-3', '4-7')), [1, 1]],
      ['a source is lost', () => void goal(viewOf('0-7', '', ['a source is lost'])), [1, 1]],
      ['another process sets the masks', () => void targets.ownedOnly(viewOf('0-7'), NONE), [1, 1]],
      ['the duty ends', () => targets.reset(), [1, 1]],
    ] as const)
      assert.deepEqual(grownAfter(change), expected, what);
  });

  it('ten releases within the delay cause one growth to all of them', () => {
    mock.timers.enable({ apis: ['setTimeout'] });
    targets = make({ growthDelay: 5 });
    goal(viewOf('0-3'));
    for (let i = 4; i < 14; i++) {
      assert.equal(goal(viewOf(`0-${i}`)), '0-3');
      mock.timers.tick(400);
    }
    mock.timers.tick(5000);
    assert.equal(grown, 1);
    assert.equal(goal(viewOf('0-13'), true), '0-13');
  });

  it('do not grow while a source is missing, even on request', () => {
    goal(viewOf('0-3', '4-7'));
    assert.equal(goal(viewOf('0-7', '', ['the kubelet does not answer']), true), '0-3');
    assert.deepEqual(targets.heldBack, ['the kubelet does not answer']);
  });

  it('avoid owned CPUs while the owners are unknown, and do not use CPUs of poll mode drivers', () => {
    pmdMask = '1';
    assert.equal(goal(viewOf(undefined, '4-7', ['x']), true, '0'), 'avoid 4-7, else 2-3,8-15');
    assert.equal(targets.lastTarget, undefined);
  });

  it('exclude CPUs that running containers hold, and check them again', () => {
    goal(viewOf('0-3', '4-7'));
    running = { guaranteed: [cpus('4-5')], others: [] };
    assert.equal(goal(viewOf('0-7'), true), '0-3,6-7');
    const text = '4-5: free in the kubelet’s state, but containers that own them may still run';
    assert.deepEqual([targets.heldBack, targets.why], [[text], [text]]);
    assert.equal(targets.isDue(), false);
    seconds = 10;
    assert.equal(targets.isDue(), true);
    running = { guaranteed: [], others: [] };
    assert.equal(goal(viewOf('0-7'), true), '0-7');
    assert.deepEqual([targets.heldBack, targets.isDue()], [[], false]);
  });

  it('avoid held and owned CPUs if all free ones are held', () => {
    running = { guaranteed: [cpus('4'), cpus('5')], others: [] };
    assert.equal(goal(viewOf('4-5', '6-7'), true), 'avoid 4-7, else 0-3,8-15');
    assert.equal(targets.lastTarget, undefined);
  });

  it('exclude CPUs that had an owner for a minute if cgroups cannot be read', () => {
    running = undefined;
    goal(viewOf('0-3', '4-7'));
    assert.equal(goal(viewOf('0-7'), true), '0-3');
    seconds = 61;
    assert.equal(goal(viewOf('0-7'), true), '0-7');
  });

  it('exclude vacated CPUs for ten seconds, or until they have their owner', () => {
    goal(viewOf('0-7'));
    targets.vacate(cpus('4-5'));
    assert.equal(String(targets.lastTarget), '0-3,6-7');
    seconds = 9.999;
    assert.deepEqual([goal(viewOf('0-7'), true), targets.isDue()], ['0-3,6-7', false]);
    seconds = 10;
    assert.equal(targets.isDue(), true);
    assert.deepEqual([goal(viewOf('0-7'), true), targets.isDue()], ['0-7', false]);

    targets.vacate(cpus('4-5'));
    targets.vacate(cpus('6'));
    assert.equal(goal(viewOf('0-3,5-7', '4'), true), '0-3,7');
    assert.equal(goal(viewOf('0-3,6-7', '4-5'), true), '0-3,7');
    assert.equal(goal(viewOf('0-7'), true), '0-5,7');
  });

  it('include a CPU for a thread that was on no other CPU', () => {
    const otherwise = (view: AssignmentsView, pmd = '') => String(targets.otherwise(view, cpus(pmd)));
    assert.equal(otherwise(viewOf('0-3')), '0-3');
    assert.equal(otherwise(viewOf('0-3'), '0-1'), '2-3');
    assert.equal(otherwise(viewOf('0-3'), '0-3'), '0-3');
    assert.equal(otherwise(viewOf(undefined, '4-15')), '0-3');
    targets.vacate(cpus('3'));
    assert.equal(otherwise(viewOf('0-3')), '0-2');
  });

  it('with another writer, avoid only owned and vacated CPUs; afterwards the next set counts as the first one', () => {
    pmdMask = '0';
    goal(viewOf('0-3', '4-7'));
    targets.vacate(cpus('8'));
    assert.equal(displayed(targets.ownedOnly(viewOf('0-3', '4-7', ['x']), cpus('1'))), 'avoid 4-8, else 2-3,9-15');
    assert.deepEqual(targets.why, [
      '4-7: owned by containers; the agent leaves all other CPUs to the process that also sets them',
    ]);
    assert.deepEqual([targets.lastTarget, targets.heldBack], [undefined, ['x']]);
    assert.equal(goal(viewOf('0-3,9', '4-7')), '1-3,9');
  });

  it('are undefined after a reset, with nothing held or vacated', () => {
    goal(viewOf('0-3', '4-7', ['x']));
    targets.vacate(cpus('1'));
    targets.reset();
    assert.deepEqual([targets.lastTarget, targets.why, targets.heldBack, targets.isDue()], [undefined, [], [], false]);
    assert.equal(goal(viewOf('0-7')), '0-7');
  });
});

describe('confirmation that free CPUs are free', () => {
  // Sets of running containers of Guaranteed pods, and of others; the CPUs to take; free, owned, pool; the held CPUs.
  const cases: [string, string[], string[], string, [string, string, string?], string][] = [
    ['no container', [], [], '4-7', ['0-7', ''], ''],
    ['a container on CPUs that it owned', ['4-5'], [], '4-7', ['0-7', ''], '4-5'],
    ['one container has ended, another one has not', ['6-7'], [], '4-7', ['0-7', ''], '6-7'],
    ['a container with some CPUs that another one owns now', ['3-4'], [], '4-7', ['0-2,4-7', '3'], '4'],
    ['the old pool, which a container uses until the kubelet writes the new one', ['0-3'], [], '4-7', ['0-7', ''], ''],
    ['the new pool', ['0-7'], [], '4-7', ['0-7', ''], ''],
    ['the first check: the pool without reserved CPUs, by the checkpoint', ['2-7'], [], '0-7', ['0-7', '', '2-7'], ''],
    ['the same without a checkpoint: the pool of a Burstable container', ['2-7'], ['2-7'], '0-7', ['0-7', ''], ''],
    ['the first check after the kubelet lost its state', ['4-5'], ['0-3', '0-7'], '0-7', ['0-7', '', '0-7'], '4-5'],
  ];
  for (const [name, guaranteed, others, gain, view, expected] of cases) {
    it(`${name}: ${expected || 'nothing'} held`, () => {
      const running = { guaranteed: guaranteed.map(cpus), others: others.map(cpus) };
      const confirmation = new Confirmation({ containers: () => running, nowSeconds: () => 0 });
      const [free, owned, pool] = view;
      const withPool = { ...viewOf(free, owned), pool: pool === undefined ? undefined : cpus(pool) };
      assert.equal(confirmation.stillUsed(cpus(gain), withPool).toString(), expected);
    });
  }
});
