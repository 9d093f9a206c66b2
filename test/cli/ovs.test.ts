import assert from 'node:assert/strict';
import { isSwitchInOrder } from '../../cli/agent/ask.ts';
import { createCommand } from '../../cli/ovs/command.ts';
import { EXIT } from '../../cli/support/exit-status.ts';
import type { OvsStatus } from '../../model/agent-status.ts';
import { parseOutput } from '../support/output-schema.ts';
import { askAgent } from '../support/run-command.ts';

const EXAMPLE: OvsStatus = {
  enabled: true,
  enablerFile: '/etc/openvswitch/enable_dynamic_cpu_affinity',
  desired: '0-3',
  why: ['4-7: owned by containers', '8: poll mode drivers'],
  problems: [],
  sources: [
    { name: 'cpu_manager_state', problem: null },
    { name: 'PodResources', problem: 'it does not answer' },
  ],
  processes: [
    {
      name: 'ovs-vswitchd',
      role: 'daemon',
      pid: 100,
      threads: [
        { tid: 100, name: 'ovs-vswitchd', allowed: '0-3', desired: '0-3', note: null },
        { tid: 101, name: 'handler1', allowed: '0-3', desired: '0-3', note: null },
        { tid: 102, name: 'handler2', allowed: '0-3', desired: '0-3', note: null },
        { tid: 103, name: 'pmd-c08/id:4', allowed: '8', desired: null, note: 'pmd' },
        { tid: 104, name: 'revalidator3', allowed: '0-1', desired: '0-3', note: 'clipped' },
        { tid: 105, name: 'urcu4', allowed: '0-7', desired: '0-3', note: null },
        { tid: 106, name: 'late', allowed: '5', desired: '0-3', note: 'EPERM' },
      ],
    },
    { name: 'ovs-vswitchd', role: 'monitor', pid: 99, threads: [] },
  ],
};

const ask = (status: OvsStatus, ...flags: string[]) =>
  askAgent(createCommand(), ['status', ...flags], { '/ovs': status });

describe('plumbline ovs status', () => {
  it('shows desired CPUs with reasons, groups similar threads in a line, and lists problems', async () => {
    const { lines, status } = await ask(EXAMPLE);
    const text = lines.map((line) => line.replaceAll(/ {2,}/g, '  '));
    assert.deepEqual(text, [
      'on: ordinary threads should run on CPUs 0-3',
      '  4-7: owned by containers',
      '  8: poll mode drivers',
      '  source cpu_manager_state: used',
      '  source PodResources: it does not answer',
      '',
      'ovs-vswitchd (pid 100), 7 threads',
      '  100 ovs-vswitchd  0-3  as desired',
      '  2 x handler  0-3  as desired',
      '  103 pmd-c08/id:4  8  poll mode driver, left alone',
      '  104 revalidator3  0-1  desired 0-3: its cpuset limits it to fewer CPUs',
      '  105 urcu4  0-7  desired 0-3: not moved yet',
      '  106 late  5  desired 0-3: refused by the kernel: EPERM',
      '',
      'ovs-vswitchd monitor (pid 99), 0 threads',
    ]);
    assert.equal(status, EXIT.findings);
    const wide = await ask(EXAMPLE, '-o', 'wide');
    assert.equal(wide.lines.filter((line) => /handler/.test(line)).length, 2);
  });

  it('is in order if every thread is on its CPUs without problems, or if it is off', () => {
    const placed = EXAMPLE.processes.map((process) => ({ ...process, threads: process.threads.slice(0, 4) }));
    assert.equal(isSwitchInOrder({ ...EXAMPLE, processes: placed }), true);
    assert.equal(isSwitchInOrder({ ...EXAMPLE, processes: placed, problems: ['something'] }), false);
    assert.equal(isSwitchInOrder(EXAMPLE), false);
    const off = placed.map((one) => ({ ...one, threads: one.threads.map((thread) => ({ ...thread, desired: null })) }));
    assert.equal(isSwitchInOrder({ ...EXAMPLE, enabled: false, desired: null, processes: off }), true);
  });

  it('reports that it is off, and that there is no daemon', async () => {
    const { stdout, status } = await ask({ ...EXAMPLE, enabled: false, desired: null, why: [], processes: [] });
    assert.equal(status, EXIT.ok);
    assert.match(stdout, /^off: .*enable_dynamic_cpu_affinity is missing or empty/);
    assert.match(stdout, /no Open vSwitch daemon found/);
  });

  it('-o json matches its schema: CPUs are numbers, null if unset', async () => {
    const dataOf = async (status: OvsStatus) => {
      const data = JSON.parse((await ask(status, '-o', 'json')).stdout);
      parseOutput('ovs-status', data);
      return data;
    };
    const threads = [
      { tid: 7, name: 'handler7', allowed: '0-3', desired: '0,2', note: 'clipped' },
      { tid: 8, name: 'pmd-c03', allowed: '3', desired: null, note: 'pmd' },
    ];
    const status = { ...EXAMPLE, desired: '0,2', why: [], sources: [] };
    const data = await dataOf({ ...status, processes: [{ name: 'ovs-vswitchd', role: 'daemon', pid: 6, threads }] });
    assert.deepEqual([data.inOrder, data.desired], [false, [0, 2]]);
    const [first, second] = data.processes[0].threads;
    assert.deepEqual([first.allowed, first.desired, first.inPlace], [[0, 1, 2, 3], [0, 2], false]);
    assert.deepEqual([second.allowed, second.desired, second.inPlace], [[3], null, true]);
    const off = await dataOf({ ...status, enabled: false, desired: null, processes: [] });
    assert.deepEqual([off.inOrder, off.desired], [true, null]);
  });
});
