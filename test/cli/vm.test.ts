import assert from 'node:assert/strict';
import { EXIT } from '../../cli/support/exit-status.ts';
import { createCommand } from '../../cli/vm/command.ts';
import type { VmStatus } from '../../model/agent-status.ts';
import { parseOutput } from '../support/output-schema.ts';
import { askAgent } from '../support/run-command.ts';

const thread = (tid: number, name: string, role: string, allowed: string, desired: string | null) => {
  return { tid, name, role, allowed, desired };
};
const VM = { namespace: 'team-a', podName: 'p', podUID: 'u', message: null, problems: [] };
const EXAMPLE: VmStatus = {
  vms: [
    {
      ...VM,
      vmi: 'a',
      pid: 1000,
      container: '0-7',
      mask: '1:3',
      state: 'pinned',
      housekeeping: null,
      threads: [
        thread(1000, 'qemu-system-x86', 'emulator', '0-7', null),
        thread(1001, 'vnc_worker', 'emulator', '0-7', null),
        thread(1003, 'CPU 0/KVM', 'vCPU 0', '1', '1'),
        thread(1004, 'CPU 1/KVM', 'vCPU 1', '3', '3'),
      ],
    },
    {
      ...VM,
      vmi: 'b',
      pid: 2000,
      container: '8-9',
      mask: null,
      state: null,
      housekeeping: '9',
      threads: [thread(2000, 'qemu-system-x86', 'emulator', '9', '9'), thread(2001, 'CPU 0/KVM', 'vCPU 0', '8', null)],
    },
  ],
  overlaps: [],
};

const ask = (status: VmStatus, ...flags: string[]) =>
  askAgent(createCommand(), ['status', ...flags], { '/vms': status });

describe('plumbline vm status', () => {
  it('is in order and says so if no VM is managed', async () => {
    const { lines, status } = await ask({ vms: [], overlaps: [] });
    assert.deepEqual([lines, status], [['no VM on this node has a CPU mask or dedicated CPUs'], EXIT.ok]);
  });

  it('shows wanted and actual CPUs of each thread, and groups similar emulator threads', async () => {
    const { lines, status } = await ask(EXAMPLE);
    const texts = lines.map((line) => line.replaceAll(/ {2,}/g, '  '));
    assert.deepEqual(texts, [
      'team-a/a: pid 1000, container CPUs 0-7',
      '  CPU mask 1:3: pinned',
      '  THREAD  NAME  ROLE  DESIRED  ACTUAL',
      '  2 threads  qemu-system-x86 …  emulator  -  0-7  left alone',
      '  1003  CPU 0/KVM  vCPU 0  1  1  as desired',
      '  1004  CPU 1/KVM  vCPU 1  3  3  as desired',
      '',
      'team-a/b: pid 2000, container CPUs 8-9',
      '  housekeeping on CPU 9',
      '  THREAD  NAME  ROLE  DESIRED  ACTUAL',
      '  2000  qemu-system-x86  emulator  9  9  as desired',
      '  2001  CPU 0/KVM  vCPU 0  -  8  left alone',
    ]);
    assert.equal((await ask(EXAMPLE, '-o', 'wide')).lines.length, lines.length + 1);
    assert.equal(status, EXIT.ok);
  });

  it('is not in order with a moved thread, a refused mask or an overlap', async () => {
    const [vm] = EXAMPLE.vms;
    const moved = vm!.threads.map((thread) => ({ ...thread, allowed: '0-7' }));
    for (const change of [{ threads: moved }, { state: 'refused' }, { mask: '0:3', state: null }]) {
      const { status } = await ask({ ...EXAMPLE, vms: [{ ...vm!, ...change }] });
      assert.equal(status, EXIT.findings, Object.keys(change).join());
    }
    const overlap = { ...EXAMPLE, overlaps: [{ vms: ['team-a/a', 'team-b/c'] as [string, string], cpus: '3' }] };
    const { stdout, status } = await ask(overlap);
    assert.equal(status, EXIT.findings);
    assert.match(stdout, /! team-a\/a and team-b\/c are both pinned to CPU 3/);
  });

  it('reports an agent that does not manage VMs, returns something else, or is down', async () => {
    const command = (pages: object) => askAgent(createCommand(), ['status'], { ...pages });
    await assert.rejects(command({ '/elsewhere': EXAMPLE }), /does not manage VMs \(--vm-pinning off/);
    await assert.rejects(command({ '/vms': { vms: 1 } }), /did not return an agent’s status/);
    await assert.rejects(
      createCommand().parseAsync(['status', '--agent', 'http://127.0.0.1:1'], { from: 'user' }),
      /run this on the node, give the agent’s address with --agent/,
    );
  });

  it('-o json matches its schema: CPUs are numbers, and the state of the mask is a word', async () => {
    const vm = {
      ...VM,
      vmi: 'fw',
      pid: 6,
      container: '0-3',
      mask: '2',
      state: 'unpinned',
      housekeeping: null,
      message: 'found those of 0',
      threads: [thread(7, 'CPU 0/KVM', 'vcpu', '2-3', '2')],
    };
    const { stdout } = await ask({ vms: [vm], overlaps: [{ vms: ['a', 'b'], cpus: '4,6' }] }, '-o', 'json');
    const data = JSON.parse(stdout);
    parseOutput('vm-status', data);
    assert.deepEqual(data.vms[0].threads[0].allowed, [2, 3]);
    assert.deepEqual([data.vms[0].verdict, data.vms[0].reason], ['degraded', 'MaskNotApplied']);
    assert.deepEqual(data.overlaps[0].cpus, [4, 6]);
  });
});
