import assert from 'node:assert/strict';
import { createCommand } from '../../cli/interference/command.ts';
import { EXIT } from '../../cli/support/exit-status.ts';
import type { DisturbedVm, InterferenceStatus } from '../../model/agent-status.ts';
import { parseOutput } from '../support/output-schema.ts';
import { askAgent } from '../support/run-command.ts';

const quiet: DisturbedVm = {
  namespace: 'demo',
  vmi: 'b',
  podName: 'virt-launcher-b',
  podUID: 'uid-b',
  cpus: '6-7',
  quality: 'counts',
  lastMinute: { seconds: 60, interrupts: null, runDelay: 0, own: 0.5 },
  sinceStart: { seconds: 7200, interrupts: null, runDelay: 0.25, own: 9 },
  share: 0,
  history: [0, null],
  sources: [{ id: 'LOC', name: 'Local timer interrupts', devices: [], count: 12 }],
};
const disturbed: DisturbedVm = {
  ...quiet,
  vmi: 'a',
  cpus: '2-5',
  quality: 'exact',
  lastMinute: { seconds: 60, interrupts: 4, runDelay: 0.5, own: 1 },
  sinceStart: { seconds: 60, interrupts: 4, runDelay: 0.5, own: 1 },
  share: 0.01875,
  sources: [{ id: '38', name: 'virtio2-input.0', devices: ['eth7'], count: 42 }],
};
const status: InterferenceStatus = {
  mode: 'measure',
  vms: [disturbed, quiet],
  items: [],
  managers: [],
  problems: ['no /proc/softirqs'],
};

const ask = (status: InterferenceStatus, ...flags: string[]) =>
  askAgent(createCommand(), flags, { '/interference': status });

describe('plumbline interference', () => {
  it('marks the VMs that lost more than 1 %, and shows a dash for what the kernel does not count', async () => {
    assert.deepEqual((await ask(status)).lines, [
      '  VM      CPUS  TAKEN   INTERRUPTS  RUN DELAY  OWN      MOST FREQUENT',
      '! demo/a  2-5   1.88 %  4.000 s     0.500 s    1.000 s  virtio2-input.0 (eth7) 42',
      '  demo/b  6-7   0.00 %  -           0.000 s    0.500 s  LOC 12',
      '! no /proc/softirqs',
    ]);
  });

  it('-o wide: since the start, and how it was measured', async () => {
    assert.deepEqual((await ask({ ...status, vms: [quiet], problems: [] }, '-o', 'wide')).lines, [
      '  VM      CPUS  TAKEN   INTERRUPTS  RUN DELAY  OWN      FOR  INTERRUPTS IN ALL  RUN DELAY IN ALL  OWN IN ALL  COUNTED             MOST FREQUENT',
      '  demo/b  6-7   0.00 %  -           0.000 s    0.500 s  2 h  -                  0.250 s           9.000 s     not by this kernel  LOC 12',
    ]);
  });

  it('--plan: what would move, what cannot, and the boot options', async () => {
    const item = {
      kind: 'irq',
      original: '0-7',
      desired: '0-1',
      actual: '0-7',
      state: 'planned',
      error: null,
    } as const;
    const items = [
      { ...item, name: '40 a' },
      { ...item, name: '41 b' },
      { ...item, name: '42 nvme0q3', original: '2', actual: '2', state: 'managed' },
      { ...item, kind: 'kthread', name: 'kswapd0', state: 'refused', error: 'EINVAL', desired: null },
    ] as const;
    const managers = [{ name: 'nri-plugins', leaves: 'interrupts' }];
    const { lines } = await ask({ ...status, vms: [quiet], problems: [], items: [...items], managers }, '--plan');
    assert.deepEqual(lines.slice(2), [
      '',
      'would move with --interrupts move:',
      'KIND           NAME        ORIGINAL  DESIRED       NOW  STATE',
      'interrupt      40 a, 41 b  0-7       0-1           0-7  planned',
      'interrupt      42 nvme0q3  2         0-1           2    managed',
      'kernel thread  kswapd0     0-7       none is left  0-7  refused: EINVAL',
      'left to nri-plugins: interrupts',
      '',
      'cannot move:',
      '  1 interrupt of the kernel: isolcpus=managed_irq,CPUS, for the queues of disks',
      '  the tick and timers (LOC: 12 in the last minute): nohz_full=CPUS',
      '  RCU callbacks: rcu_nocbs=CPUS',
      '  interrupts between CPUs: no option; fewer with isolcpus=domain,CPUS',
      '  workqueues and kernel threads that belong to one CPU: no option',
    ]);
  });

  it('-o json matches its schema', async () => {
    const { stdout, status: exit } = await ask(status, '-o', 'json');
    assert.equal(exit, EXIT.findings);
    const data = parseOutput<{ vms: { cpus: readonly number[]; disturbed: boolean }[] }>(
      'interference',
      JSON.parse(stdout),
    );
    assert.deepEqual(
      data.vms.map(({ cpus, disturbed: is }) => [cpus.length, is]),
      [
        [4, true],
        [2, false],
      ],
    );
  });

  it('names a pod that the kubelet has not named by its uid', async () => {
    const [, line] = (await ask({ ...status, vms: [{ ...quiet, namespace: '', vmi: '', podName: '' }] })).lines;
    assert.match(line ?? '', /^ {2}uid-b /);
  });

  it('says that there is nothing to disturb', async () => {
    const { lines, status: exit } = await ask({ ...status, vms: [], problems: [] });
    assert.deepEqual([lines, exit], [['no VM on this node has dedicated CPUs'], EXIT.ok]);
  });
});
