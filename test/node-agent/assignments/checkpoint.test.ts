import assert from 'node:assert/strict';
import { renameSync } from 'node:fs';
import { join } from 'node:path';
import { mock } from 'node:test';
import {
  type Checkpoint,
  CheckpointSource,
  parseCheckpoint,
  type Reading,
} from '../../../node-agent/assignments/checkpoint.ts';
import { Guard } from '../../../node-agent/lifecycle/duty.ts';
import { messagesOf, recordingLogger, replaceFile, tempDirectories, useVirtualClock } from '../support.ts';

const V2 =
  '{"policyName":"static","defaultCpuSet":"0-1,6-7","entries":{"uid-b":{"c":"4-5"},"uid-a":{"y":"3","x":"2"}},"checksum":1}';

/** A file of version 4: its content is JSON in a text. */
function v4(data: object, top: object = {}): string {
  const content = { policyName: 'static', defaultCpuSet: '0', ...data };
  return JSON.stringify({ data: JSON.stringify(content), dataChecksum: 7, ...top });
}

describe('cpu_manager_state', () => {
  it('v2: reads entries by pod uid and container, in ascending order', () => {
    const { policy, defaultCpus, owned } = parseCheckpoint(V2);
    assert.deepEqual([policy, `${defaultCpus}`, `${owned}`], ['static', '0-1,6-7', '2-5']);
    assert.deepEqual(displayed(V2), ['uid-a/x=2', 'uid-a/y=3', 'uid-b/c=4-5']);
  });

  const state = (more: object) => JSON.stringify({ policyName: 'static', defaultCpuSet: '0', ...more });
  const one = (cpus: string) => ({ u: { c: cpus } });
  const OLDER = { policyName: 'static', defaultCpuSet: '0-1', entries: {} };
  const odd = '"entries":{"__proto__":{"constructor":"2"}},"podEntries":{"__proto__":"3"}}';
  const forms: [string, string, string][] = [
    ['no entries', '{"policyName":"none","defaultCpuSet":"","checksum":2}', ''],
    ['a container on the shared pool', state({ entries: one('') }), ''],
    ['names that others choose', state({}).replace('}', `,${odd}`), '__proto__/=3 __proto__/constructor=2'],
    ['v3, the whole pod', state({ podEntries: { u: { cpuSet: '1-2' } } }), 'u/=1-2'],
    ['v3, another case', state({ podEntries: { u: { cpuset: '1' } } }), 'u/=1'],
    ['v3, plain', state({ podEntries: { u: '1' } }), 'u/=1'],
    ['v3, pod and containers', state({ entries: one('1'), podEntries: { u: '1-2' } }), 'u/=1-2 u/c=1'],
    ['v4, without data', state({ data: '', entries: one('1') }), 'u/c=1'],
    ['v4, containers', v4({ entries: one('1') }), 'u/c=1'],
    ['v4, the whole pod', v4({ podEntries: { u: { cpuSet: '1-4' } }, entries: one('1-2') }), 'u/=1-4 u/c=1-2'],
    ['v4, with baselines', v4({ entries: one('1-4'), baselines: { u: { c: { baseline: '1-2' } } } }), 'u/c=1-4'],
    ['v4, null instead of no entries', v4({ entries: null, podEntries: null, baselines: null }), ''],
    ['v4, whose data replace what an older kubelet would read', v4({ entries: one('1') }, OLDER), 'u/c=1'],
    ['an unknown number or plain text', v4({ generation: 3, note: 'x' }, { dataChecksum: 5, note: 'y' }), ''],
  ];
  const displayed = (text: string) =>
    parseCheckpoint(text).entries.map(({ podUID, container, cpus }) => `${podUID}/${container}=${cpus}`);
  for (const [name, text, expected] of forms) it(name, () => assert.equal(displayed(text).join(' '), expected));

  it('refuses more containers than a report can name, before it reads any CPU set', () => {
    const file = (count: number, cpus: string) => {
      const many = Array.from({ length: count }, (_, i) => [`u${i}`, { c: cpus }]);
      return JSON.stringify({ policyName: 'static', defaultCpuSet: '0', entries: Object.fromEntries(many) });
    };
    assert.throws(() => parseCheckpoint(file(2049, 'none')), /2049 containers with CPUs; the agent reads at most 2048/);
    assert.equal(parseCheckpoint(file(2048, '8191')).entries.length, 2048);
  });

  const LATER = /^unknown format at podSets: a field of a later version of the kubelet$/;
  const wrong: [string, string, RegExp][] = [
    ['nothing', '', /^torn: it is empty$/],
    ['one character', '{', /^torn: its 1 characters are not complete JSON$/],
    ['a number', '1', /^unknown format at the top: expected object, received number$/],
    ['a missing policy', '{"defaultCpuSet":"0-3"}', /policyName/],
    ['a missing shared pool', '{"policyName":"static"}', /defaultCpuSet/],
    ['an invalid pool', '{"policyName":"static","defaultCpuSet":"all"}', /defaultCpuSet/],
    ['v1, keyed by container id', state({ entries: { abc: '1-2' } }), /at entries.abc: it has no containers$/],
    ['a list of containers', state({ entries: { u: ['1'] } }), /at entries.u: it has no containers$/],
    ['a container without a CPU set', state({ entries: { u: { c: 1 } } }), /at entries.u.c: not a CPU set$/],
    ['an invalid CPU list', state({ entries: { u: { c: '1-x' } } }), /entries.u.c/],
    ['a pod without a CPU set', state({ podEntries: { u: { mem: '1' } } }), /at podEntries.u: it has no CPU set$/],
    ['owners in a field of a later version', state({ podSets: { u: { cpuSet: '1-2' } } }), LATER],
    ['v4, an incomplete text', JSON.stringify({ data: '{"policyName":"static"' }), /^torn: its 22 characters/],
    ['v4, a text without content', JSON.stringify({ data: '{}' }), /^unknown format at data\.policyName: /],
    ['v4, a text that is no object', JSON.stringify({ data: '[]' }), /^unknown format at data: /],
    ['v4, owners in a field of a later version', v4({ shared: [['u', '1-2']] }), /^unknown format at data\.shared: /],
    ['v4, a second text with owners', v4({}, { more: '{"entries":{}}' }), /^unknown format at more: /],
  ];
  for (const [what, text, message] of wrong) {
    it(`refuses ${what}, with place and reason`, () =>
      assert.throws(() => parseCheckpoint(text), { name: 'CheckpointError', code: 'checkpoint', message }));
  }
});

const stateOf = (cpus: string) =>
  JSON.stringify({ policyName: 'static', defaultCpuSet: cpus, entries: {}, checksum: 1 });

describe('the kubelet’s checkpoint without events', () => {
  const temp = tempDirectories();
  const clock = useVirtualClock(10);
  let directory: string;
  let file: string;
  let readings: string[];
  let logged: ReturnType<typeof recordingLogger>;
  let stop: AbortController;

  beforeEach(() => {
    directory = temp();
    file = join(directory, 'cpu_manager_state');
    readings = [];
    logged = recordingLogger();
    stop = new AbortController();
  });
  afterEach(() => stop.abort());

  const follow = () => {
    const onReading = ({ value, problem }: Reading<Checkpoint>, at: number) =>
      readings.push(`${at} ${value?.defaultCpus} ${problem === undefined}`);
    new CheckpointSource({ directory, log: logged.log, onReading }).follow(new Guard(), stop.signal);
  };
  /** In one turn of the event loop, in which no event of the directory arrives. */
  const pass = (seconds: number) => {
    clock.seconds += seconds;
    mock.timers.tick(seconds * 1000);
  };

  it('is read at the start, and again within ten seconds of a change, until the end', () => {
    replaceFile(file, stateOf('0-3'));
    follow();
    assert.deepEqual(readings, ['10000 0-3 true']);
    replaceFile(file, stateOf('0-2'));
    pass(9);
    assert.equal(readings.length, 1);
    pass(1);
    assert.deepEqual(readings, ['10000 0-3 true', '20000 0-2 true']);
    replaceFile(file, stateOf('0-1'));
    stop.abort();
    pass(10);
    assert.equal(readings.length, 2);
    assert.deepEqual(logged.lines, []);
  });

  it('is unreadable at first and after a removal: reported once with the next step, and the last value is kept', () => {
    follow();
    pass(15);
    assert.deepEqual(readings, ['10000 undefined false']);
    assert.deepEqual(messagesOf(logged), ['40 cpu_manager_state unusable; keeping the last known assignments']);
    assert.match(String(logged.lines[0]?.['reason']), /^cannot read .*cpu_manager_state: ENOENT/);
    assert.equal(logged.lines[0]?.['hint'], 'the kubelet writes it; check the mount of its directory');
    replaceFile(file, stateOf('0-3'));
    pass(5);
    renameSync(file, `${file}.away`);
    pass(10);
    pass(10);
    renameSync(`${file}.away`, file);
    pass(10);
    assert.deepEqual(readings.slice(1), ['30000 0-3 true', '40000 0-3 false', '60000 0-3 true']);
  });
});
