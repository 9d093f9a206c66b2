import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { agentAt } from '../../../cli/agent/ask.ts';
import { fetchOvsStatus, isSwitchInOrder } from '../../../cli/agent/ovs-status.ts';
import { statusLines } from '../../../cli/ovs/run.ts';
import { type OvsStatus, ovsStatus } from '../../../model/agent-status.ts';
import { OvsAffinity } from '../../../node-agent/ovs-affinity/ovs-affinity.ts';
import { createLogger } from '../../../runtime/log.ts';
import { Registry } from '../../../runtime/metrics.ts';
import { createProbeServer } from '../../../runtime/probes.ts';
import { needs, skipWithout } from '../../support/parts.ts';
import { startStandIn, tempDirectories } from '../support.ts';
import { first, machine, ovsParts, rest, settableView } from './stage.ts';

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

describe('plumbline ovs status', () => {
  it('shows desired CPUs with reasons, groups similar threads in a line, and lists problems', () => {
    const text = statusLines(EXAMPLE).map((line) => line.replaceAll(/ {2,}/g, '  '));
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
      '',
    ]);
    assert.equal(statusLines(EXAMPLE, true).filter((line) => /handler/.test(line)).length, 2);
  });

  it('is in order if every thread is on its CPUs without problems, or if it is off', () => {
    const placed = EXAMPLE.processes.map((one) => ({ ...one, threads: one.threads.slice(0, 4) }));
    assert.equal(isSwitchInOrder({ ...EXAMPLE, processes: placed }), true);
    assert.equal(isSwitchInOrder({ ...EXAMPLE, processes: placed, problems: ['something'] }), false);
    assert.equal(isSwitchInOrder(EXAMPLE), false);
    const off = placed.map((one) => ({ ...one, threads: one.threads.map((thread) => ({ ...thread, desired: null })) }));
    assert.equal(isSwitchInOrder({ ...EXAMPLE, enabled: false, desired: null, processes: off }), true);
  });

  it('reports that it is off, and that there is no daemon', () => {
    const text = statusLines({ ...EXAMPLE, enabled: false, desired: null, why: [], processes: [] }).join('\n');
    assert.match(text, /^off: .*enable_dynamic_cpu_affinity is missing or empty/);
    assert.match(text, /no Open vSwitch daemon found/);
  });

  describe('with an agent', () => {
    needs('linux');
    const temp = tempDirectories();

    it('the command reads the agent’s answer', async function () {
      skipWithout('twoCpus', this);
      const directory = temp();
      for (const name of ['run', 'etc']) mkdirSync(join(directory, name));
      writeFileSync(join(directory, 'etc/enable'), '1');
      const daemon = await startStandIn('ovs-vswitchd', 1, join(directory, 'run/ovs-vswitchd.pid'));
      const stop = new AbortController();
      const assignments = settableView({ free: machine() });
      const ovs = new OvsAffinity(ovsParts(directory, { assignments }));
      const running = ovs.run(stop.signal);
      assignments.free(first(), rest());
      const server = createProbeServer({
        host: '127.0.0.1',
        port: 0,
        notReady: () => undefined,
        registry: new Registry(),
        pages: { '/ovs': ovs.status },
        log: createLogger('test', 'silent'),
      });
      await server.start();
      try {
        const status = await fetchOvsStatus(agentAt(`http://127.0.0.1:${server.port}/`));
        assert.equal(status.desired, first());
        assert.deepEqual(status.why, [`${rest()}: owned by containers`]);
        assert.match(status.problems.join(), /ovsdb-server is not managed/);
        assert.ok(
          status.processes[0]!.threads.every(({ allowed, desired }) => allowed === first() && desired === first()),
        );
        assert.deepEqual(ovsStatus.parse(JSON.parse(JSON.stringify(ovs.status()))), ovs.status());
      } finally {
        await server.stop(0);
        stop.abort();
        await running;
        await daemon.stop();
      }
    });

    const answers: [string, number, string, RegExp][] = [
      ['no such page', 404, '', /does not manage Open vSwitch/],
      ['a failure', 500, '', /answered 500/],
      ['something else', 200, '{"hello":1}', /did not return an agent’s status/],
    ];
    for (const [name, status, body, expected] of answers) {
      it(`reports the answer: ${name}`, async () => {
        const server = createServer((_request, response) => void response.writeHead(status).end(body));
        await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
        const { port } = server.address() as AddressInfo;
        await assert.rejects(fetchOvsStatus(agentAt(`http://127.0.0.1:${port}`)), expected);
        server.close();
      });
    }

    it('reports a missing agent and the next step', async () => {
      await assert.rejects(
        fetchOvsStatus(agentAt('http://127.0.0.1:1')),
        /run this on the node, give the agent’s address/,
      );
    });
  });
});
