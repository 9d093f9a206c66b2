import assert from 'node:assert/strict';
import type { HostReport } from '../../model/kubelet/report.ts';
import type { Step } from './play.ts';
import { type RecordedRound, readRecording, writeRecording } from './recording.ts';
import { ROUNDS } from './rounds.ts';

describe('a recording of the lab', () => {
  const [round] = ROUNDS;
  assert.ok(round);
  const host = { cells: [{ id: 0, cpus: '0-1' }], cores: ['0-1'] };
  const cells = { '0': { blocks: 1, group: '0', free: { memory: 5 } } };
  const pod = { spec: { containers: [{ name: 'main' }], initContainers: [] } };
  const created = (name: string, actual: Step['actual']): Step => ({
    action: 'create',
    name,
    pod,
    verdict: { admitted: true },
    actual,
  });
  const steps: Step[] = [
    created('b', { defaultSet: '0', cpus: { b: { main: '1' } }, devices: {} }),
    created('a', {
      defaultSet: '',
      cpus: { a: { main: '0' }, b: { main: '1' } },
      devices: { a: { main: { r: ['r-1'] } } },
      memory: { cells, blocks: { a: { main: { memory: '0: 5' } } } },
    }),
    {
      action: 'delete',
      name: 'b',
      actual: {
        defaultSet: '1',
        cpus: { a: { main: '0' } },
        devices: { a: { main: { r: ['r-1'] } } },
        memory: { cells, blocks: { a: { main: { memory: '0: 5' } } } },
      },
    },
  ];
  const report: HostReport = {
    ...host,
    reserved: '0',
    cpuManager: { policy: 'static' },
    assignments: [],
    devices: [
      {
        resource: 'r',
        groups: [
          { total: 2, free: 2 },
          { cells: '1', total: 1, free: 1 },
        ],
      },
    ],
  };
  const assignments = [{ podUID: 'b', container: 'main', cpus: '1' }];
  const { devices: _, ...without } = report;
  const used = [
    {
      resource: 'r',
      groups: [
        { total: 2, free: 1 },
        { cells: '1', total: 1, free: 1 },
      ],
    },
  ];
  const reports = [{ ...report, assignments, devices: used }, without, without];
  const reported = steps.map((step, i) => ({ ...step, report: reports[i] }));
  const rounds: RecordedRound[] = [
    { node: { round, version: 'v1.36.2', host }, steps },
    { node: { round, version: 'v1.33.13', host }, report, steps: reported },
  ];

  it('is read as it was written', () => {
    assert.deepEqual(readRecording(writeRecording(rounds)), rounds);
  });

  it('has only the changes of each step', () => {
    const lines = writeRecording(rounds).trim().split('\n');
    assert.equal(lines.length, 8);
    assert.deepEqual(JSON.parse(lines[3] ?? '').changed, { defaultSet: '1', cpus: { b: null } });
    const fields = lines.slice(5).map((line) => JSON.parse(line).reported);
    const oneUsed = { 0: { groups: { 0: { free: 1 } } } };
    assert.deepEqual(fields, [{ assignments, devices: oneUsed }, { devices: null, assignments: [] }, {}]);
  });
});
