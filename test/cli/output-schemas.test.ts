import assert from 'node:assert/strict';
import { byCause } from '../../cli/doctor/causes.ts';
import { checkPods } from '../../cli/doctor/checks/pods.ts';
import { readFacts } from '../../cli/doctor/facts/facts.ts';
import { doctorData } from '../../cli/doctor/run.ts';
import { explain } from '../../cli/explain/explain.ts';
import { readSubject } from '../../cli/explain/subject.ts';
import { ovsStatusData } from '../../cli/ovs/run.ts';
import type { ClusterAccess } from '../../cli/support/cluster.ts';
import { readTop, viewData } from '../../cli/top/read.ts';
import { readVerifyFacts, verifyMasks } from '../../cli/verify/survey.ts';
import { vmStatusData } from '../../cli/vm/run.ts';
import { createObjectsApi } from './objects-api.ts';
import { OUTPUT_SCHEMAS, parseOutput } from './output-schema.ts';
import { NOW, STATE_TABLE } from './state-table.ts';

const accept = (name: string, data: unknown) => void parseOutput(name, data);

describe('the schemas of -o json', () => {
  it('exist for each command, and accept no unknown field', () => {
    const commands = [
      'doctor',
      'explain',
      'ovs-status',
      'simulate',
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

  for (const { title, objects, subject } of STATE_TABLE) {
    it(`match the output for a VM: ${title}`, async () => {
      const access = { client: createObjectsApi(objects), namespace: 'tenants' } as unknown as ClusterAccess;
      const [kind, name] = subject;
      const read = await readSubject(access.client, { kind, namespace: 'tenants', name }, 'default');
      accept('explain', await explain(access, read, {}, NOW));
      const report = checkPods(await readFacts(access, NOW));
      accept('doctor', doctorData([report], byCause(report.findings), undefined));
      if (objects['/apis/plumbline.dev/v1alpha1/nodetopologies']?.length === 0) return;
      const { nodes, notes } = await readTop(access.client, [], NOW);
      accept('top', { nodes: nodes.map(viewData), notes });
      accept('verify', verifyMasks(await readVerifyFacts(access.client, undefined, NOW)));
    });
  }

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
