import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { lineText, paint, terminalOf } from '../../cli/support/terminal.ts';
import { watch } from '../../cli/support/watch.ts';
import * as lines from '../../cli/top/run.ts';
import { type NodeMap, viewData, viewOf } from '../../cli/top/view.ts';
import { hostsOf } from '../../diagnosis/hosts.ts';
import { type ExplainedPod, explainedPod } from '../../diagnosis/objects.ts';
import { KubeError } from '../../kube/client.ts';
import type { NodeTopologyStatus } from '../../kube/node-topology.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import { launcher } from '../diagnosis/fixture.ts';
import { eventually } from '../support/eventually.ts';
import { parseOutput } from '../support/output-schema.ts';
import { skipFor } from '../support/parts.ts';
import { topologyObject, useCluster } from './cluster-fixture.ts';
import { assertFails, PROGRAM } from './run.ts';

const plain = (width = Number.POSITIVE_INFINITY) => ({
  ...terminalOf({ isTTY: false, columns: 80 } as never, {}),
  width,
});

const topLines = (...args: Parameters<typeof lines.topLines>) => lines.topLines(...args).map((line) => lineText(line));
const nodeLines = (...args: Parameters<typeof lines.nodeLines>) =>
  lines.nodeLines(...args).map((line) => lineText(line));

/** 4 cores of 2 threads with an isolated emulator: 9 CPUs, which the webhook has padded to 10. */
const FIREWALL = {
  name: 'default/firewall',
  vmi: {
    metadata: {},
    spec: { domain: { cpu: { cores: 4, threads: 2, dedicatedCpuPlacement: true, isolateEmulatorThread: true } } },
  },
};

type Remark = NodeMap['remarks'][number];
const CORDONED: Remark = { reason: 'Cordoned', text: 'cordoned' };

const SILENT: Remark = { reason: 'AgentSilent', text: 'its agent is silent' };

function view(report: Partial<NodeTopologyStatus> = {}, remark = CORDONED, bound: readonly ExplainedPod[] = []) {
  const assignments = [{ podUID: 'fw', container: 'compute', cpus: '1-5,17-21' }];
  const topology = topologyObject('worker-1', { pmdCPUs: '0,16', assignments, ...report });
  const { hosts } = hostsOf([topology as never]);
  return viewOf(hosts[0]!, new Map([['fw', FIREWALL]]), [remark], bound);
}

describe('plumbline top', () => {
  describe('a picture', () => {
    it('shows the CPUs of a claim under its name, not as free', () => {
      const claims = [{ uid: 'c', namespace: 'tenants', name: 'db-cpus', cpus: '6-7,22-23' }];
      const lines = topLines({ nodes: [view({ pmdCPUs: '', claims })], notes: [] }, plain());
      assert.deepEqual(lines.slice(0, 4), [
        'worker-1  16 of 32 CPUs free, 8 whole cores  (cordoned)',
        '  NUMA 0 physnet0  RR AA AA AA AA A/ BB BB',
        '  NUMA 1           ·· ·· ·· ·· ·· ·· ·· ··',
        '  A default/firewall (10)   B tenants/db-cpus (4)',
      ]);
    });

    it('shows threads of a core side by side, and the padding CPU', () => {
      assert.deepEqual(topLines({ nodes: [view({ pmdCPUs: '' })], notes: [] }, plain()), [
        'worker-1  20 of 32 CPUs free, 10 whole cores  (cordoned)',
        '  NUMA 0 physnet0  RR AA AA AA AA A/ ·· ··',
        '  NUMA 1           ·· ·· ·· ·· ·· ·· ·· ··',
        '  A default/firewall (10)',
        '',
        '· free   R reserved   / completes a core   letters: VMs',
      ]);
    });

    it('has a VM that was placed since the last report on the CPUs that it gets, and none of them as free', () => {
      const launcherOf = (uid: string) =>
        explainedPod.parse(
          launcher({
            metadata: { name: `virt-launcher-${uid}`, namespace: 'default', uid },
            spec: { nodeName: 'worker-1' },
            status: { phase: 'Running', qosClass: 'Guaranteed' },
          }),
        );
      const late = view({ pmdCPUs: '' }, SILENT, [launcherOf('fw'), launcherOf('new')]);
      assert.deepEqual(topLines({ nodes: [late], notes: [] }, plain()).slice(0, 4), [
        'worker-1  16 of 32 CPUs free, 8 whole cores  (its agent is silent)',
        '  NUMA 0 physnet0  RR AA AA AA AA A/ BB BB',
        '  NUMA 1           ·· ·· ·· ·· ·· ·· ·· ··',
        '  A default/firewall (10)   B default/virt-launcher-new (predicted) (4)',
      ]);
      const owners = viewData(late).owners.map(({ cpus, predicted = false }) => `${cpus.length} ${predicted}`);
      assert.deepEqual(owners, ['10 false', '4 true']);
    });

    it('has VMs with a CPU mask, which own no CPUs', () => {
      const annotations = { 'plumbline.dev/cpu-mask': '8-9' };
      const masked = explainedPod.parse(
        launcher({
          metadata: { name: 'virt-launcher-m', namespace: 'default', uid: 'm', annotations },
          spec: { nodeName: 'worker-1', containers: [{ name: 'compute' }] },
          status: { phase: 'Running' },
        }),
      );
      const data = view({ pmdCPUs: '' }, CORDONED, [masked]);
      assert.deepEqual(topLines({ nodes: [data], notes: [] }, plain())[4], '  default/virt-launcher-m: CPU mask 8-9');
      assert.deepEqual(viewData(data).masked, [{ name: 'default/virt-launcher-m', mask: '8-9' }]);
    });

    it('shows CPUs on which Open vSwitch polls, rather than that they are reserved', () => {
      assert.match(topLines({ nodes: [view()], notes: [] }, plain())[1] ?? '', /physnet0 {2}PP AA/);
    });

    it('has CPU numbers for one node', () => {
      const lines = nodeLines(view({ pmdCPUs: '' }), plain());
      assert.equal(lines[3], 'NUMA node 0  (physnet0)');
      assert.match(lines[4] ?? '', /^ {3}0 16 {2}│ {2}1 17/);
      assert.match(lines[5] ?? '', /^ {3}R {2}R {2}│ {2}A {2}A/);
      assert.match(lines.at(-1) ?? '', /R reserved {3}\/ completes a core {3}A default\/firewall \(10\) {3}· free/);
    });

    it('has the free devices and memory by NUMA node, a line for each resource: of one node, or in wide form', () => {
      const cell = (id: number, free: number) => ({
        id,
        memory: 64 * 2 ** 30,
        state: { blocks: 0, group: `${id}`, free: { memory: free * 2 ** 30, 'hugepages-1Gi': 2 ** 30 } },
      });
      const group = (cells: string, total: number, free: number) => ({ cells, total, free });
      const node = view({
        devices: [
          { resource: 'example.com/vf', groups: [group('0', 4, 3), group('1', 2, 0)] },
          { resource: 'example.com/fuse', groups: [{ total: 9, free: 9 }] },
        ],
        memoryManager: { policy: 'Static', cells: [cell(0, 1.5), cell(1, 20)] },
      });
      const rows = [
        '  example.com/vf    NUMA 0: 3 of 4 free, NUMA 1: 0 of 2 free',
        '  example.com/fuse  9 of 9 free',
        '  memory            NUMA 0: 1.5 GiB free, NUMA 1: 20 GiB free',
        '  hugepages-1Gi     NUMA 0: 1 GiB free, NUMA 1: 1 GiB free',
      ];
      assert.deepEqual(nodeLines(node, plain()).slice(-4), rows);
      const top = { nodes: [node], notes: [] };
      assert.deepEqual(topLines(top, plain(), true).slice(-6, -2), rows);
      assert.ok(!topLines(top, plain()).some((line) => line.includes('example.com')));
      const fuse = { resource: 'example.com/fuse', text: '9 of 9 free' };
      assert.deepEqual(viewData(node).resources[1], fuse);
      const data = { nodes: [viewData(node)], notes: [] };
      assert.deepEqual(parseOutput('top', data), data);
    });

    it('does not count the CPUs of a silent node as free, and marks a pod of its old report as gone', () => {
      const deleted = { podUID: 'u', namespace: 'east', podName: 'virt-launcher-vm-x2x4z', container: 'compute' };
      const old = view({ assignments: [{ ...deleted, cpus: '1,17' }] }, { reason: 'AgentSilent', text: 'silent' });
      const lines = topLines({ nodes: [view(), old], notes: [] }, plain(200));
      assert.ok(lines.at(-1)?.endsWith(`, ${old.free.size} unknown`), lines.at(-1));
      assert.ok(lines.some((line) => line.includes('east/virt-launcher-vm-x2x4z (gone)')));
    });

    for (const width of [30, 40, 80]) {
      it(`stays within ${width} columns`, () => {
        const all = topLines({ nodes: [view(), view()], notes: [] }, plain(width));
        for (const line of [...all, ...nodeLines(view(), plain(width)).slice(0, -1)]) {
          assert.ok(line.length <= width, `${line.length}: ${line}`);
        }
      });
    }

    it('has as many CPUs as the node, at any width', () => {
      const drawn = topLines({ nodes: [view()], notes: [] }, plain(30))
        .slice(1, -2)
        .join('\n');
      const marks = drawn.replaceAll(/NUMA \d( phys\S*)?|A default\/firewall.*|\s/g, '');
      assert.equal(marks.length, 32, drawn);
    });

    it('has the same content as data', () => {
      const { owners, free, freeCores } = viewData(view({ pmdCPUs: '' }));
      const cpus = CpuSet.parse('1-5,17-21').toArray();
      assert.deepEqual(owners, [{ name: 'default/firewall', cpus, numaNodes: [0], padding: [21] }]);
      assert.deepEqual(free, CpuSet.parse('6-15,22-31').toArray());
      assert.equal(freeCores, 10);
    });
  });

  describe('colour', () => {
    const cases: readonly [string, NodeJS.ProcessEnv, boolean, boolean][] = [
      ['is used on a terminal', {}, true, true],
      ['is not used in a pipe', {}, false, false],
      ['is not used with NO_COLOR', { NO_COLOR: '1' }, true, false],
      ['is used with an empty NO_COLOR', { NO_COLOR: '' }, true, true],
      ['is not used on a dumb terminal', { TERM: 'dumb' }, true, false],
      ['is used in a pipe with FORCE_COLOR', { FORCE_COLOR: '1' }, false, true],
      ['is not used with both NO_COLOR and FORCE_COLOR', { FORCE_COLOR: '1', NO_COLOR: '1' }, true, false],
    ];
    for (const [title, env, isTTY, color] of cases) {
      it(title, () => {
        const terminal = terminalOf({ isTTY, columns: 80 } as never, env);
        assert.equal(terminal.color, color);
        assert.equal(lineText([paint('red', 'x')], terminal.color) !== 'x', color);
      });
    }
  });

  describe('--watch', () => {
    const screen = (isTTY: boolean, rows = 4) => {
      const written: string[] = [];
      return { written, out: { isTTY, rows, columns: 80, write: (text: string) => written.push(text) > 0 } as never };
    };

    it('redraws in place within the screen, and restores the terminal', async () => {
      const { written, out } = screen(true);
      const controller = new AbortController();
      let drawn = 0;
      const draw = async () => {
        if (++drawn === 2) controller.abort();
        return () => ['a', 'b', 'c', 'd', 'e'];
      };
      await watch(draw, { seconds: 0.001, out, signal: controller.signal });
      assert.equal(written[0], '\x1b[?1049h\x1b[?25l');
      assert.equal(written[1], '\x1b[Ha\x1b[K\nb\x1b[K\nc\x1b[K\n… 2 more lines\x1b[K\x1b[J');
      assert.equal(written.at(-1), '\x1b[?25h\x1b[?1049l');
    });

    it('restores the terminal even if the first picture fails', async () => {
      const { written, out } = screen(true);
      const fails = () => Promise.reject(new KubeError(403, 'Forbidden', 'GET /: 403 Forbidden: no'));
      await assert.rejects(watch(fails, { seconds: 1, out, signal: new AbortController().signal }), KubeError);
      assert.equal(written.at(-1), '\x1b[?25h\x1b[?1049l');
    });

    it('reports a cluster that stops answering later, and retries', async () => {
      const { written, out } = screen(false);
      const controller = new AbortController();
      let turn = 0;
      const draw = async () => {
        turn++;
        if (turn === 2) throw new KubeError(0, 'Unreachable', 'GET /x: connect ECONNREFUSED');
        if (turn === 3) controller.abort();
        return () => ['picture'];
      };
      await watch(draw, { seconds: 0.001, out, signal: controller.signal });
      assert.equal(written[0], 'picture\n');
      assert.match(written[1] ?? '', /nothing listens there.*; trying again/);
      assert.equal(written[2], 'picture\n');
    });
  });

  describe('with a cluster', function () {
    this.timeout(300_000);
    const cluster = useCluster(async (made) => {
      await made.node('worker-1');
      await made.node('worker-2', { unschedulable: true });
      await made.node('worker-10');
    });
    const top = (...args: string[]) => cluster.run('top', ...args);

    it('shows every node, sorted by number', async () => {
      const { stdout, status } = await top();
      assert.equal(status, 0);
      assert.deepEqual(stdout.match(/^worker-\d+/gm), ['worker-1', 'worker-2', 'worker-10']);
      assert.match(stdout, /^3 nodes, 96 CPUs: 90 free, 45 whole cores of them$/m);
      assert.ok(!stdout.includes('\x1b'), 'no colour into a pipe');
    });

    it('prints -o json and -o name', async () => {
      const { nodes } = JSON.parse((await top('-o', 'json')).stdout) as {
        nodes: { node: string; remarks: object[] }[];
      };
      const [, { node, remarks } = assert.fail()] = nodes;
      assert.deepEqual([node, remarks], ['worker-2', [{ reason: 'Cordoned', text: 'cordoned' }]]);
      assert.equal((await top('worker-2', '-o', 'name')).stdout, 'node/worker-2\n');
    });

    it('is live in a pseudo terminal until Ctrl-C, and restores it', async function () {
      if (!existsSync('/usr/bin/script')) skipFor({ name: 'script', install: 'apt-get install bsdutils' }, this);
      const { NO_COLOR: _, COLUMNS: __, ...rest } = process.env;
      const env = { ...rest, KUBECONFIG: cluster.kubeconfig, TERM: 'xterm' };
      // Without exec, Ctrl-C would also end the shell, whose status would then be the result.
      const command = `stty rows 8 cols 60; exec '${process.execPath}' '${PROGRAM}' top`;
      const terminal = spawn('/usr/bin/script', ['-qec', command, '/dev/null'], { env });
      let seen = '';
      terminal.stdout.setEncoding('utf8').on('data', (text: string) => {
        seen += text;
      });
      const ended = new Promise<number | null>((resolve) => terminal.once('exit', resolve));
      await eventually(() => seen.includes('more lines'), 'the first picture');
      assert.ok(seen.includes('\x1b[?1049h') && !seen.includes('worker-10'), 'the picture is cut to the screen');
      terminal.stdin.write('\u0003');
      assert.equal(await ended, 0);
      assert.match(seen, /\[\?25h.\[\?1049l\s*$/s);
    });

    it('exits with 4 for a node that does not report', async () => {
      assertFails(await top('worker-7'), 4, /: node worker-7 does not report its topology/);
      assertFails(await top('worker-7', 'worker-8'), 4, /: nodes worker-7, worker-8 do not report their topology/);
    });
  });
});
