import assert from 'node:assert/strict';
import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { mock } from 'node:test';
import type { Checkpoint } from '../../../node-agent/assignments/checkpoint.ts';
import { followCheckpoint } from '../../../node-agent/assignments/checkpoint-source.ts';
import type { Reading } from '../../../node-agent/assignments/view.ts';
import { recordingLogger, tempDirectories } from '../support.ts';

const stateOf = (cpus: string) =>
  JSON.stringify({ policyName: 'static', defaultCpuSet: cpus, entries: {}, checksum: 1 });

/** Each test is one turn of the event loop, in which no event of the directory arrives. */
describe('the kubelet’s checkpoint without events', () => {
  const temp = tempDirectories();
  let directory: string;
  let file: string;
  let now: number;
  let readings: { reading: Reading<Checkpoint>; at: number }[];
  let logged: ReturnType<typeof recordingLogger>;
  let stop: AbortController;

  beforeEach(() => {
    directory = join(temp(), 'kubelet');
    mkdirSync(directory);
    file = join(directory, 'cpu_manager_state');
    now = 10_000;
    readings = [];
    logged = recordingLogger();
    stop = new AbortController();
    mock.timers.enable({ apis: ['setTimeout', 'setInterval'] });
    mock.method(performance, 'now', () => now);
  });
  afterEach(() => {
    stop.abort();
    mock.timers.reset();
    mock.reset();
    syncBuiltinESMExports();
  });

  const follow = () =>
    followCheckpoint(
      { directory, log: logged.log, onReading: (reading, at) => readings.push({ reading, at }) },
      stop.signal,
    );
  const pass = (milliseconds: number) => {
    now += milliseconds;
    mock.timers.tick(milliseconds);
  };
  const write = (text: string) => {
    writeFileSync(`${file}.new`, text);
    renameSync(`${file}.new`, file);
  };
  const displayed = () =>
    readings.map(({ reading, at }) => `${at} ${reading.value?.defaultCpus} ${reading.problem === undefined}`);
  const messages = () => logged.lines.map(({ level, msg }) => `${level} ${msg}`);

  it('is read at the start, and again within five seconds of a change, until the end', () => {
    write(stateOf('0-3'));
    follow();
    assert.deepEqual(displayed(), ['10000 0-3 true']);
    write(stateOf('0-2'));
    pass(4999);
    assert.equal(readings.length, 1);
    pass(1);
    assert.deepEqual(displayed(), ['10000 0-3 true', '15000 0-2 true']);
    write(stateOf('0-1'));
    stop.abort();
    pass(10_000);
    assert.equal(readings.length, 2);
    assert.deepEqual(messages(), []);
  });

  it('is unreadable at first and after a removal: reported once with the next step, and the last value is kept', () => {
    follow();
    pass(15_000);
    assert.deepEqual(displayed(), ['10000 undefined false']);
    assert.deepEqual(messages(), ['40 cpu_manager_state unusable; keeping the last known assignments']);
    assert.match(String(logged.lines[0]?.['reason']), /^cannot read .*cpu_manager_state: ENOENT/);
    assert.equal(logged.lines[0]?.['hint'], 'the kubelet writes it; check --kubelet-dir');
    write(stateOf('0-3'));
    pass(5000);
    renameSync(file, `${file}.away`);
    for (let i = 0; i < 2; i++) pass(5000);
    renameSync(`${file}.away`, file);
    pass(5000);
    assert.deepEqual(displayed().slice(1), ['30000 0-3 true', '35000 0-3 false', '45000 0-3 true']);
  });
});
