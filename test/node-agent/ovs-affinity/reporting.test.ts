import assert from 'node:assert/strict';
import { mock } from 'node:test';
import { UNKNOWN_VIEW } from '../../../node-agent/assignments/view.ts';
import { foreignWriter } from '../../../node-agent/ovs-affinity/problems.ts';
import { AffinityEvents, AffinityReporting } from '../../../node-agent/ovs-affinity/reporting.ts';
import { createAgentMetrics } from '../../../node-agent/telemetry/metrics.ts';
import { Registry } from '../../../runtime/metrics.ts';
import { recordingEvents, recordingLogger } from '../support.ts';
import { cpus } from './stage.ts';

let registry: Registry;
let recorded: ReturnType<typeof recordingEvents>;
let logged: ReturnType<typeof recordingLogger>;
let now: number;
let writtenAt: number | undefined;
let tell: AffinityReporting;

const reasons = () => recorded.events.map(({ reason }) => reason);
const viewOf = (free: string | undefined, owned: string) => {
  return { ...UNKNOWN_VIEW, problems: [], free: free === undefined ? undefined : cpus(free), owned: cpus(owned) };
};
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
    const counted = (await messages()).filter((line) => line.includes('errors_total'));
    assert.deepEqual(
      counted.map((line) => line.split('_total')[1]),
      ['{cause="EPERM"} 2', '{cause="pidfile-stale"} 1'],
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
    const silent = ['the kubelet does not answer'];
    for (const problems of [silent, [], silent]) tell.unknown(problems);
    assert.deepEqual(reasons(), []);
    for (const problems of [silent, silent]) tell.unknown(problems);
    assert.deepEqual(reasons(), ['OvsAffinityLimited']);
  });

  it('log moved threads with their target or avoided CPUs, their number and the seconds since the change', async () => {
    mock.method(performance, 'now', () => 2000.1234567);
    mock.method(Date, 'now', () => 50_000);
    tell.moved({ only: cpus('0') }, 3, viewOf('0-3', ''), 2000);
    writtenAt = 49_500;
    tell.moved({ avoid: cpus('1-2'), otherwise: cpus('0') }, 2, viewOf('0,3', '1-2'), 1000.1234567);
    const [first, second] = logged.lines.map(({ level: _l, time: _t, msg: _m, ...fields }) => fields);
    assert.deepEqual(first, { cpus: '0', threads: 3, sinceNoticedSeconds: 0.000123 });
    assert.deepEqual(second, { avoided: '1-2', threads: 2, sinceNoticedSeconds: 1, sinceAssignedSeconds: 0.5 });
    assert.ok(logged.said('moved OVS threads'));
    const lines = await messages();
    assert.ok(lines.includes('plumbline_ovs_assigned_to_vacated_seconds_sum 0.5'));
    const sum = lines.find((line) => line.startsWith('plumbline_ovs_move_seconds_sum'));
    assert.ok(Math.abs(Number(sum?.split(' ')[1]) - 1.0001234567) < 1e-9, sum);
  });

  const assignments: [string, [string | undefined, string], [string | undefined, string], count: number][] = [
    ['free CPUs shrink', ['0-3', ''], ['0-1', ''], 1],
    ['CPUs get an owner', ['0-3', ''], ['0-3', '2'], 1],
    ['an owner ends', ['0-1', '2-3'], ['0-1', '2'], 0],
    ['free CPUs grow', ['0-1', ''], ['0-3', ''], 0],
    ['free CPUs become known', [undefined, ''], ['0-1', ''], 0],
  ];
  for (const [name, before, after, count] of assignments) {
    it(`${name}: ${count === 1 ? 'an assignment' : 'not an assignment'}`, async () => {
      writtenAt = Date.now();
      for (const view of [viewOf(...before), viewOf(...after)])
        tell.moved({ only: cpus('0') }, 1, view, performance.now());
      assert.ok((await messages()).includes(`plumbline_ovs_assigned_to_vacated_seconds_count ${count}`));
    });
  }

  it('send a separate Event for another writer', () => {
    const foreign = foreignWriter('/etc/enable');
    tell.problems([foreign]);
    assert.deepEqual(reasons(), ['OvsAffinityContended']);
    tell.problems([foreign, { cause: 'x', text: 'something else' }]);
    const { reason, message } = recorded.events.at(-1) ?? {};
    assert.deepEqual([reason, message], ['OvsAffinityIncomplete', 'something else']);
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
