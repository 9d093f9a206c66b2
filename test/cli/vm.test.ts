import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { agentAt } from '../../cli/agent/ask.ts';
import { areVmsInOrder, fetchVmStatus, statusLines } from '../../cli/vm/run.ts';
import type { VmStatus } from '../../model/agent-status.ts';

const thread = (tid: number, name: string, role: string, allowed: string, desired: string | null) => {
  return { tid, name, role, allowed, desired };
};
const VM = { namespace: 'team-a', podName: 'p', podUID: 'u', message: null, problems: [] };
const EXAMPLE: VmStatus = {
  vms: [
    {
      ...VM,
      ...{ vmi: 'a', pid: 1000, container: '0-7', mask: '1:3', state: 'pinned', housekeeping: null },
      threads: [
        thread(1000, 'qemu-system-x86', 'emulator', '0-7', null),
        thread(1001, 'vnc_worker', 'emulator', '0-7', null),
        thread(1003, 'CPU 0/KVM', 'vCPU 0', '1', '1'),
        thread(1004, 'CPU 1/KVM', 'vCPU 1', '3', '3'),
      ],
    },
    {
      ...VM,
      ...{ vmi: 'b', pid: 2000, container: '8-9', mask: null, state: null, housekeeping: '9' },
      threads: [thread(2000, 'qemu-system-x86', 'emulator', '9', '9'), thread(2001, 'CPU 0/KVM', 'vCPU 0', '8', null)],
    },
  ],
  overlaps: [],
};

describe('plumbline vm status', () => {
  it('is in order and says so if no VM is managed', () => {
    const status = { vms: [], overlaps: [] };
    assert.deepEqual(statusLines(status), ['no VM on this node has a CPU mask or dedicated CPUs']);
    assert.ok(areVmsInOrder(status));
  });

  it('shows wanted and actual CPUs of each thread, and groups similar emulator threads', () => {
    const lines = statusLines(EXAMPLE).map((line) => line.replaceAll(/ {2,}/g, '  '));
    assert.deepEqual(lines, [
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
    assert.equal(statusLines(EXAMPLE, true).length, lines.length + 1);
    assert.ok(areVmsInOrder(EXAMPLE));
  });

  it('is not in order with a moved thread, a refused mask or an overlap', () => {
    const [vm] = EXAMPLE.vms;
    const moved = vm!.threads.map((thread) => ({ ...thread, allowed: '0-7' }));
    assert.ok(!areVmsInOrder({ ...EXAMPLE, vms: [{ ...vm!, threads: moved }] }));
    assert.ok(!areVmsInOrder({ ...EXAMPLE, vms: [{ ...vm!, state: 'refused' }] }));
    assert.ok(!areVmsInOrder({ ...EXAMPLE, vms: [{ ...vm!, mask: '0:3', state: null }] }));
    const overlap = { ...EXAMPLE, overlaps: [{ vms: ['team-a/a', 'team-b/c'] as [string, string], cpus: '3' }] };
    assert.ok(!areVmsInOrder(overlap));
    assert.match(statusLines(overlap).join('\n'), /! team-a\/a and team-b\/c are both pinned to CPU 3/);
  });

  it('reports an agent that does not manage VMs, returns something else, or is down', async () => {
    const server = createServer((request, response) => {
      response.writeHead(request.url === '/vms' ? 200 : 404).end('{"vms":1}');
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const agent = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    await assert.rejects(fetchVmStatus(agentAt(`${agent}/elsewhere`)), /does not manage VMs \(--vm-pinning off/);
    await assert.rejects(fetchVmStatus(agentAt(agent)), /did not return an agent’s status/);
    server.close();
    await assert.rejects(
      fetchVmStatus(agentAt('http://127.0.0.1:1')),
      /run this on the node, give the agent’s address with --agent/,
    );
  });
});
