import assert from 'node:assert/strict';
import { ovsStatusData } from '../../cli/ovs/run.ts';
import { vmStatusData } from '../../cli/vm/run.ts';
import { OUTPUT_SCHEMAS, parseOutput } from '../support/output-schema.ts';

const accept = (name: string, data: unknown) => void parseOutput(name, data);

describe('the schemas of -o json', () => {
  it('exist for each command, and accept no unknown field', () => {
    const commands = [
      'doctor',
      'explain',
      'interference',
      'ovs-status',
      'simulate',
      'simulate-without',
      'status',
      'top',
      'topology',
      'verify',
      'vm-status',
    ];
    assert.deepEqual([...OUTPUT_SCHEMAS.keys()].sort(), commands);
    for (const [name, schema] of OUTPUT_SCHEMAS) assert.equal(schema.safeParse({ unknown: 1 }).success, false, name);
  });

  it('name a field that is wrong', () => {
    const { error } = OUTPUT_SCHEMAS.get('verify')!.safeParse({ vms: [] });
    assert.ok((error?.issues.length ?? 0) > 0);
  });

  it('match the threads of a VM: CPUs are numbers, and the state of the mask is a word', () => {
    const thread = { tid: 7, name: 'CPU 0/KVM', role: 'vcpu', allowed: '2-3', desired: '2' };
    const vm = {
      namespace: 'tenants',
      vmi: 'fw',
      podName: 'virt-launcher-fw',
      podUID: 'uid',
      pid: 6,
      container: '0-3',
      mask: '2',
      state: 'unpinned',
      message: 'found those of 0',
      housekeeping: null,
      problems: [],
      threads: [thread],
    };
    const data = vmStatusData({ vms: [vm], overlaps: [{ vms: ['a', 'b'], cpus: '4,6' }] });
    accept('vm-status', data);
    assert.deepEqual(data.vms[0]?.threads[0]?.allowed, [2, 3]);
    assert.deepEqual([data.vms[0]?.verdict, data.vms[0]?.reason], ['degraded', 'MaskNotApplied']);
    assert.deepEqual(data.overlaps[0]?.cpus, [4, 6]);
  });

  it('match Open vSwitch’s threads: CPUs are numbers, null if unset', () => {
    const threads = [
      { tid: 7, name: 'handler7', allowed: '0-3', desired: '0,2', note: 'clipped' },
      { tid: 8, name: 'pmd-c03', allowed: '3', desired: null, note: 'pmd' },
    ];
    const status = { enabled: true, enablerFile: '/etc/x', desired: '0,2', why: [], problems: [], sources: [] };
    const data = ovsStatusData({ ...status, processes: [{ name: 'ovs-vswitchd', role: 'daemon', pid: 6, threads }] });
    accept('ovs-status', data);
    assert.deepEqual([data.inOrder, data.desired], [false, [0, 2]]);
    assert.deepEqual(
      data.processes[0]?.threads.map(({ allowed, desired, inPlace }) => [allowed, desired, inPlace]),
      [
        [[0, 1, 2, 3], [0, 2], false],
        [[3], null, true],
      ],
    );
    const off = ovsStatusData({ ...status, enabled: false, desired: null, processes: [] });
    accept('ovs-status', off);
    assert.deepEqual([off.inOrder, off.desired], [true, null]);
  });
});
