import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { agentAt } from '../../../cli/agent/ask.ts';
import { areVmsInOrder, fetchVmStatus, statusLines } from '../../../cli/vm/run.ts';
import { eventually, tempDirectories } from '../support.ts';
import { createScene } from './stage.ts';

describe('plumbline vm status', () => {
  const temp = tempDirectories();
  const controller = new AbortController();
  const scene = createScene(temp());
  const vms = scene.create();
  let server: Server;
  let agent: string;
  let body: () => unknown = vms.status;

  before(async () => {
    void vms.run(controller.signal);
    server = createServer((request, response) => {
      if (request.url !== '/vms') return void response.writeHead(404).end();
      response.end(JSON.stringify(body()));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    agent = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  after(() => {
    controller.abort();
    server.close();
  });

  it('is in order and says so if no VM is managed', async () => {
    const status = await fetchVmStatus(agentAt(agent));
    assert.deepEqual(statusLines(status), ['no VM on this node has a CPU mask or dedicated CPUs']);
    assert.ok(areVmsInOrder(status));
  });

  it('shows wanted and actual CPUs of each thread, and groups similar emulator threads', async () => {
    const a = scene.addVm({ name: 'a', vcpus: 2, mask: '1:3', cpuset: '0-7' });
    const b = { name: 'b', vcpus: 2, cpuset: '8-9,24-25', pins: [8, 24], housekeeping: '9' };
    scene.addVm(b);
    await eventually(() => vms.status().vms.filter(({ threads }) => threads.length > 0).length === 2, 'looked at');
    const status = await fetchVmStatus(agentAt(agent));
    const lines = statusLines(status).map((line) => line.replace(/^ {2}\d{4} +/, '  TID ').replaceAll(/ {2,}/g, '  '));
    assert.deepEqual(lines, [
      `team-a/a: pid ${a.pid}, container CPUs 0-7`,
      '  CPU mask 1:3: pinned',
      '  THREAD  NAME  ROLE  DESIRED  ACTUAL',
      '  3 threads  qemu-system-x86 …  emulator  -  0-7  left alone',
      '  TID CPU 0/KVM  vCPU 0  1  1  as desired',
      '  TID CPU 1/KVM  vCPU 1  3  3  as desired',
      '',
      `team-a/b: pid ${status.vms[1]?.pid}, container CPUs 8-9,24-25`,
      '  housekeeping on CPUs 9,25',
      '  THREAD  NAME  ROLE  DESIRED  ACTUAL',
      '  3 threads  qemu-system-x86 …  emulator  9,25  9,25  as desired',
      '  TID CPU 0/KVM  vCPU 0  -  8  left alone',
      '  TID CPU 1/KVM  vCPU 1  -  24  left alone',
    ]);
    assert.equal(statusLines(status, true).length, lines.length + 4);
    assert.ok(areVmsInOrder(status));
  });

  it('is not in order with a moved thread, a refused mask or an overlap', async () => {
    const status = await fetchVmStatus(agentAt(agent));
    const [vm] = status.vms;
    const moved = vm!.threads.map((thread) => ({ ...thread, allowed: '0-7' }));
    assert.ok(!areVmsInOrder({ ...status, vms: [{ ...vm!, threads: moved }] }));
    assert.ok(!areVmsInOrder({ ...status, vms: [{ ...vm!, state: 'refused' }] }));
    const overlap = { ...status, overlaps: [{ vms: ['team-a/a', 'team-b/c'] as [string, string], cpus: '3' }] };
    assert.ok(!areVmsInOrder(overlap));
    assert.match(statusLines(overlap).join('\n'), /! team-a\/a and team-b\/c are both pinned to CPU 3/);
  });

  it('reports an agent that does not manage VMs, returns something else, or is down', async () => {
    await assert.rejects(fetchVmStatus(agentAt(`${agent}/elsewhere`)), /does not manage VMs \(--vm-pinning off/);
    body = () => ({ vms: 1 });
    await assert.rejects(fetchVmStatus(agentAt(agent)), /did not return an agent’s status/);
    await assert.rejects(
      fetchVmStatus(agentAt('http://127.0.0.1:1')),
      /run this on the node, give the agent’s address with --agent/,
    );
  });
});
