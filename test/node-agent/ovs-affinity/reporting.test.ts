import assert from 'node:assert/strict';
import { mock } from 'node:test';
import { UNKNOWN_VIEW } from '../../../node-agent/assignments/view.ts';
import { foreignWriter } from '../../../node-agent/ovs-affinity/problems.ts';
import { AffinityEvents, AffinityReporting, Contention } from '../../../node-agent/ovs-affinity/reporting.ts';
import { createAgentMetrics } from '../../../node-agent/telemetry/metrics.ts';
import { Registry } from '../../../runtime/metrics.ts';
import { recordingLogger } from '../support.ts';
import { cpus, recordingEvents } from './stage.ts';

let registry: Registry;
let recorded: ReturnType<typeof recordingEvents>;
let logged: ReturnType<typeof recordingLogger>;
let now: number;
let writtenAt: number | undefined;
let tell: AffinityReporting;

const reasons = () => recorded.events.map(({ reason }) => reason);
const viewOf = (free: string, owned: string) => ({
  ...UNKNOWN_VIEW,
  problems: [],
  free: cpus(free),
  owned: cpus(owned),
});
const messages = async () =>
  (await registry.metrics()).split('\n').filter((line) => /^plumbline_ovs_/.test(line) && !/_bucket/.test(line));

describe('reports of OVS affinity', () => {
  beforeEach(() => {
    registry = new Registry();
    recorded = recordingEvents();
    logged = recordingLogger();
    now = 5000;
    writtenAt = undefined;
    const events = new AffinityEvents({ recorder: recorded.recorder, nodeName: 'n', nowSeconds: () => now });
    const metrics = createAgentMetrics(registry);
    tell = new AffinityReporting({ log: logged.log, metrics, events, assignedAt: () => writtenAt });
  });

  afterEach(() => mock.reset());

  it('count problems by cause when they begin, and log each change', async () => {
    const refusal = { cause: 'EPERM', text: 'ovsdb-server: the kernel refused 1 threads: EPERM' };
    const more = { cause: 'EPERM', text: 'ovsdb-server: the kernel refused 2 threads: EPERM' };
    const other = { cause: 'pidfile-stale', text: 'ovs-vswitchd is not managed' };
    for (const problems of [[refusal], [refusal], [more], [more, other], [], [refusal]]) tell.problems(problems);
    assert.deepEqual(
      (await messages()).filter((line) => line.includes('errors_total')),
      [
        'plumbline_ovs_affinity_errors_total{cause="EPERM"} 2',
        'plumbline_ovs_affinity_errors_total{cause="pidfile-stale"} 1',
      ],
    );
    assert.equal(logged.lines.length, 5);
    assert.ok(logged.said('OVS affinity complete'));
  });

  it('send one Event in ten minutes if only its numbers change', () => {
    const problem = (threads: number) => [{ cause: 'EPERM', text: `the kernel refused ${threads} threads` }];
    for (const threads of [1, 2, 3]) tell.problems(problem(threads));
    assert.deepEqual(reasons(), ['OvsAffinityIncomplete']);
    now += 601;
    tell.problems(problem(4));
    assert.equal(reasons().length, 2);
  });

  it('send an Event if the owners of CPUs stay unknown', () => {
    tell.unknown(['the kubelet does not answer']);
    tell.unknown([]);
    tell.unknown(['the kubelet does not answer']);
    assert.deepEqual(reasons(), []);
    tell.unknown(['the kubelet does not answer']);
    tell.unknown(['the kubelet does not answer']);
    assert.deepEqual(reasons(), ['OvsAffinityLimited']);
  });

  it('log moved threads with their target or avoided CPUs, their number and the seconds since the change', async () => {
    mock.method(performance, 'now', () => 2000.1234567);
    mock.method(Date, 'now', () => 50_000);
    tell.moved({ only: cpus('0') }, 3, viewOf('0-3', ''), 2000);
    writtenAt = 49_500;
    tell.moved({ avoid: cpus('1-2'), otherwise: cpus('0') }, 2, viewOf('0,3', '1-2'), 1000.1234567);
    assert.deepEqual(
      logged.lines.map(({ level: _l, time: _t, ...line }) => line),
      [
        { cpus: '0', threads: 3, sinceNoticedSeconds: 0.000123, msg: 'moved OVS threads' },
        {
          avoided: '1-2',
          threads: 2,
          sinceNoticedSeconds: 1,
          sinceAssignedSeconds: 0.5,
          msg: 'moved OVS threads',
        },
      ],
    );
    const lines = await messages();
    assert.ok(lines.includes('plumbline_ovs_assigned_to_vacated_seconds_sum 0.5'));
    const sum = lines.find((line) => line.startsWith('plumbline_ovs_move_seconds_sum'));
    assert.ok(Math.abs(Number(sum?.split(' ')[1]) - 1.0001234567) < 1e-9, sum);
  });

  const assignments: [string, [string | undefined, string], [string | undefined, string], boolean][] = [
    ['free CPUs shrink', ['0-3', ''], ['0-1', ''], true],
    ['CPUs get an owner', ['0-3', ''], ['0-3', '2'], true],
    ['an owner ends', ['0-1', '2-3'], ['0-1', '2'], false],
    ['free CPUs grow', ['0-1', ''], ['0-3', ''], false],
    ['free CPUs become known', [undefined, ''], ['0-1', ''], false],
  ];
  for (const [name, before, after, isAssignment] of assignments) {
    it(`${name}: ${isAssignment ? 'an assignment' : 'not an assignment'}`, async () => {
      const view = ([free, owned]: [string | undefined, string]) => ({
        ...viewOf('', owned),
        free: free === undefined ? undefined : cpus(free),
      });
      writtenAt = Date.now();
      const goal = { only: cpus('0') };
      tell.moved(goal, 1, view(before), performance.now());
      tell.moved(goal, 1, view(after), performance.now());
      const count = isAssignment ? 1 : 0;
      assert.ok((await messages()).includes(`plumbline_ovs_assigned_to_vacated_seconds_count ${count}`));
    });
  }

  it('send a separate Event for another writer', () => {
    const foreign = foreignWriter('/etc/enable');
    tell.problems([foreign]);
    assert.deepEqual(reasons(), ['OvsAffinityContended']);
    tell.problems([foreign, { cause: 'x', text: 'something else' }]);
    assert.equal(recorded.events.at(-1)?.reason, 'OvsAffinityIncomplete');
    assert.doesNotMatch(recorded.events.at(-1)?.message ?? '', /another process/);
    assert.match(recorded.events.at(-1)?.message ?? '', /something else/);
  });

  it('start again after a reset: the same text is logged again, and the first check is not an assignment', async () => {
    tell.reserved(cpus('0'));
    tell.unknown(['a']);
    writtenAt = Date.now();
    tell.moved({ only: cpus('0') }, 1, viewOf('0-3', ''), performance.now());
    tell.reset();
    tell.reserved(cpus('0'));
    tell.unknown(['a']);
    tell.moved({ only: cpus('0') }, 1, viewOf('0', '1'), performance.now());
    assert.deepEqual(reasons(), []);
    assert.equal(logged.lines.filter(({ msg }) => String(msg).includes('reservedSystemCPUs')).length, 2);
    assert.ok((await messages()).includes('plumbline_ovs_assigned_to_vacated_seconds_count 0'));
  });
});

describe('another process that sets the CPUs of threads', () => {
  let seconds: number;
  let contention: Contention;
  /** At this second, a pass finds this number of moved threads. */
  const pass = (at: number, displaced: number) => {
    seconds = at;
    contention.note(displaced);
    return contention.mode === 'contended';
  };
  const isContendedAt = (at: number) => {
    seconds = at;
    return contention.mode === 'contended';
  };

  beforeEach(() => {
    seconds = 0;
    contention = new Contention(() => seconds);
  });

  it('is not suspected if no thread was moved', () => assert.equal(pass(10, 0), false));

  it('is suspected for a minute after one move, which may be an operator’s', () => {
    assert.equal(pass(10, 5), false);
    assert.equal(contention.mode === 'suspected', true);
    seconds = 69.999;
    assert.equal(contention.mode === 'suspected', true);
    seconds = 70;
    assert.equal(contention.mode === 'suspected', false);
    assert.equal(pass(70, 5), false);
    assert.equal(pass(129.999, 5), true);
    assert.equal(contention.mode === 'suspected', false, 'it is known');
  });

  it('is a program if it moves threads twice within a minute, until ten minutes without a move', () => {
    for (const at of [10, 11, 60, 300]) pass(at, 1);
    assert.equal(isContendedAt(899), true);
    assert.equal(isContendedAt(900), false);
    assert.equal(pass(900, 0), false);
    assert.equal(pass(901, 1), false, 'an operator again');
    assert.equal(pass(902, 1), true);
  });
});
