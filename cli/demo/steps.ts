import { availableParallelism } from 'node:os';
import { ownerLetter, ownersByCpu } from '../../diagnosis/hosts.ts';
import { CpuSet, unionOf } from '../../model/cpu-set.ts';
import { DECISION_ANNOTATION } from '../../model/names.ts';
import * as types from '../../sandbox/api-server/built-in-types.ts';
import type { KubePod } from '../../sandbox/objects.ts';
import { drawCpuMap } from '../support/cpu-map.ts';
import type { Line } from '../support/terminal.ts';
import type { DemoCluster } from './cluster.ts';
import { DEMO_NODES } from './nodes.ts';
import { type DemoContext, DPU_LEASE_SECONDS, OVS_NODE } from './plumbline.ts';
import { maskedVmPinned } from './step-masked.ts';
import { expect, until } from './until.ts';
import * as vms from './vms.ts';

/** KubeVirt requests one CPU more than the guest has; a full-pcpus-only kubelet only accepts whole cores. */
async function rejectedByKubelet({ cluster, printer }: DemoContext) {
  const created = await vms.createVm(cluster, { name: 'plain', annotated: false, node: 'smt2' });
  const cpus = vms.computeOf(created).limits['cpu'];
  printer.lines([
    'VM "plain": 4 cores x 2 threads, dedicated CPUs, an isolated emulator thread',
    `its launcher pod asks for ${cpus} CPUs; node smt2 has 2 threads a core and takes whole cores only`,
  ]);
  // KubeVirt deletes the launcher and its VMI at once, so only the Event is left.
  const event = await until('the kubelet to reject the launcher', 10, () =>
    cluster.client.list(types.EVENTS).find((event) => event['reason'] === 'SMTAlignmentError'),
  );
  const vm = cluster.client.get(types.VIRTUAL_MACHINES, vms.DEMO_NAMESPACE, 'plain');
  if (vm !== undefined) await cluster.client.delete(types.VIRTUAL_MACHINES, vm);
  const { reason, message } = event as unknown as { reason: string; message: string };
  printer.lines([`kubelet: ${reason}: ${message}`]);
  expect(reason === 'SMTAlignmentError', `expected SMTAlignmentError, saw ${reason}`);
  const text = 'SMT Alignment Error: requested 9 cpus not multiple cpus per core = 2';
  expect(String(message).includes(text), `expected the kubelet to say "${text}"`);
  return { node: 'smt2', cpus, reason, message };
}

async function installPlumbline({ cluster, printer, ovs, install }: DemoContext) {
  printer.lines(DEMO_NODES.map(({ name, about }) => `${name.padEnd(8)} ${about}`));
  const installed = await install();
  printer.progress('the daemons start');
  await installed.ready();
  await installed.wire();
  for (const { name, physnets } of DEMO_NODES) {
    await until(`the report of node ${name}`, 10, () => {
      const report = cluster.client.get(types.NODE_TOPOLOGIES, undefined, name);
      return report?.status === undefined ? undefined : report;
    });
    for (const physnet of Object.keys(physnets)) {
      const resource = `physnet.plumbline.dev/${physnet}`;
      await until(`node ${name} to advertise ${resource}`, 10, () => {
        const allocatable = cluster.client.get(types.NODES, undefined, name)?.status?.allocatable?.[resource];
        return allocatable !== undefined && allocatable !== '0' ? allocatable : undefined;
      });
    }
  }
  const processes = installed.daemons().map(({ name, pid }) => ({ name, pid }));
  printer.lines([
    processes.map(({ name, pid }) => `${name} (pid ${pid})`).join(', '),
    `Open vSwitch of node numa1: ${ovs.kind}, pids ${ovs.pids.join(' and ')}`,
    `DPU of node dpu: its lease counts for ${DPU_LEASE_SECONDS} s`,
  ]);
  return { processes, openVswitch: ovs.kind };
}

const FORWARDER = 'forwarder';

/** The launcher is padded, scheduled to the node of its physnet, and runs on that physnet's NUMA node. */
async function paddedAndPlaced({ cluster, printer }: DemoContext) {
  await cluster.client.create(types.NETWORK_ATTACHMENT_DEFINITIONS, vms.localnet('dataplane', 'physnet1'));
  const created = await vms.createVm(cluster, { name: FORWARDER, annotated: true, network: 'dataplane' });
  const { requests, limits } = vms.computeOf(created);
  printer.lines([
    `webhook:  CPUs ${limits['cpu']}, asks for ${Object.keys(limits)
      .filter((name) => name.includes('plumbline'))
      .join(', ')}`,
    `          ${created.metadata.annotations?.[DECISION_ANNOTATION] ?? 'no decision'}`,
  ]);
  expect(limits['cpu'] === '10' && requests['cpu'] === '10', `expected 10 CPUs, saw ${limits['cpu']}`);
  expect(limits['physnet.plumbline.dev/physnet1'] === '1', 'expected a request for physnet.plumbline.dev/physnet1');

  const pod = await vms.untilRunning(cluster, FORWARDER, 15);
  const node = pod.spec.nodeName ?? '';
  const cpus = await until('the report to show its CPUs', 10, () =>
    vms.reportedCpus(cluster, node, pod.metadata.uid ?? ''),
  );
  const { host } = cluster.node(node);
  const cells = host.cells.filter((cell) => cell.cpus.intersects(cpus)).map(({ id }) => id);
  printer.lines([`scheduler: node ${node}; kubelet: CPUs ${cpus} on NUMA node ${cells.join(',')}`, '']);
  printer.lines(drawNode(cluster, node, pod.metadata.uid ?? ''));
  expect(node === 'numa1', `expected node numa1, which alone has physnet1, saw ${node}`);
  expect(cells.join() === '1', `expected NUMA node 1, where physnet1 is, saw ${cells.join()}`);
  expect(
    host.cores.every((core) => !core.intersects(cpus) || core.isSubsetOf(cpus)),
    `CPUs ${cpus} are not whole cores`,
  );
  const padded = await until('an Event on the VMI about the padding', 10, () =>
    vms.eventsOf(cluster, FORWARDER).find(({ reason }) => reason === 'PaddedToWholeCores'),
  );
  return { node, cpus: cpus.toString(), cells, event: padded.message, requests };
}

function drawNode(cluster: DemoCluster, name: string, uid: string): Line[] {
  const { host } = cluster.node(name);
  const cpus = vms.reportedCpus(cluster, name, uid) ?? CpuSet.EMPTY;
  const index = ownersByCpu(vms.assignmentsOn(cluster, name)).findIndex(([owner]) => owner?.podUID === uid);
  const reserved = host.cores[0] ?? CpuSet.EMPTY;
  const physnets = Object.entries(DEMO_NODES.find((node) => node.name === name)?.physnets ?? {});
  const cellLabels = new Map(physnets.flatMap(([physnet, cells]) => cells.map((cell) => [cell, physnet] as const)));
  return drawCpuMap({
    host,
    cellLabels,
    owners: [
      { mark: 'R', label: 'reserved for the system', cpus: reserved, style: 'dim' },
      { mark: ownerLetter(index), label: FORWARDER, cpus, style: 'green' },
    ],
  });
}

/** The threads are real: only CPUs of this machine can be read back, not the emulated node's others. */
async function switchMovesOff({ cluster, printer, ovs, installed }: DemoContext) {
  const uid = vms.demoLauncher(cluster, FORWARDER)?.metadata.uid ?? '';
  const owned = vms.reportedCpus(cluster, OVS_NODE, uid) ?? CpuSet.EMPTY;
  const machine = CpuSet.range(0, availableParallelism() - 1);
  const shared = owned.intersect(machine);
  const threads = await until(`every thread of Open vSwitch off CPUs ${shared}`, 5, async () => {
    const now = await ovs.threads();
    return now.length > 0 && !unionOf(now).intersects(owned) ? now : undefined;
  });
  const moves = (installed().agents.get(OVS_NODE)?.log() ?? []).filter(({ msg }) => msg === 'moved OVS threads');
  const move = moves.findLast((line) => shared.isEmpty || !CpuSet.parse(String(line['cpus'])).intersects(owned));
  printer.lines([
    `${ovs.kind}: ${threads.length} threads of pids ${ovs.pids.join(' and ')}, from /proc`,
    `allowed CPUs before: ${machine}   now: ${unionOf(threads)}   (the VM owns ${owned})`,
  ]);
  if (shared.isEmpty) {
    printer.lines([`this machine has CPUs ${machine} only, and the VM has none of them: nothing to move`]);
    return { threads: threads.length, allowed: unionOf(threads).toString(), moved: false };
  }
  expect(move !== undefined, 'the agent reports no move');
  const { sinceNoticedSeconds } = move;
  expect(typeof sinceNoticedSeconds === 'number', 'the agent reports no duration of its move');
  const milliseconds = Math.round(sinceNoticedSeconds * 1_000_000) / 1000;
  printer.lines([
    `${String(move['threads'])} threads moved ${milliseconds} ms after the agent learned who owns the CPUs`,
  ]);
  return { threads: threads.length, allowed: unionOf(threads).toString(), moved: true, milliseconds };
}

const DPU_NODE = 'dpu';
const OFFLOADED_VM = 'offloaded';

async function dpuDies({ cluster, printer, installed }: DemoContext) {
  const { dpuSide } = installed();
  await until('the extender to see the DPU alive', 10, () => extenderSays(installed().schedulerPlugin.log(), true));
  printer.lines([
    `killing the DPU’s process (pid ${dpuSide.process?.pid ?? 0}); its lease counts for ${DPU_LEASE_SECONDS} s`,
  ]);
  const died = performance.now();
  await dpuSide.kill();
  await until('the extender to see the DPU dead', DPU_LEASE_SECONDS + 7, () =>
    extenderSays(installed().schedulerPlugin.log(), false),
  );
  const seconds = Math.round((performance.now() - died) / 100) / 10;
  printer.lines([`noticed after ${seconds} s`]);

  await vms.createVm(cluster, { name: OFFLOADED_VM, annotated: true, node: DPU_NODE });
  const refusal = await until('the scheduler to say why the VM waits', 10, () =>
    vms
      .eventsOf(cluster, OFFLOADED_VM)
      .find(({ reason, message }) => reason === 'FailedScheduling' && message.includes('DPU not ready')),
  );
  printer.lines([`VM "${OFFLOADED_VM}" waits: ${refusal.message}`]);
  const pod = vms.demoLauncher(cluster, OFFLOADED_VM);
  expect(pod?.spec.nodeName === undefined, `expected the VM to wait, but it is on ${pod?.spec.nodeName}`);
  const direct = pod && (await askExtender(await installed().extenderPort(), pod));
  expect(direct?.includes(DPU_NODE) !== true, 'the extender still accepts the node');
  return { noticedAfterSeconds: seconds, reason: refusal.message };
}

/** No object that kube-scheduler watches changes: the extender must trigger the retry of the waiting pod. */
async function dpuReturns({ cluster, printer, installed }: DemoContext) {
  const began = performance.now();
  await installed().dpuSide.start();
  const pod = await vms.untilRunning(cluster, OFFLOADED_VM, 15);
  const seconds = Math.round((performance.now() - began) / 100) / 10;
  printer.lines([
    `VM "${OFFLOADED_VM}" runs on node ${pod.spec.nodeName}, ${seconds} s after the restart of the DPU’s process`,
  ]);
  expect(pod.spec.nodeName === DPU_NODE, `expected node ${DPU_NODE}, saw ${pod.spec.nodeName}`);
  return { node: pod.spec.nodeName, seconds };
}

function extenderSays(log: readonly Readonly<Record<string, unknown>>[], alive: boolean): true | undefined {
  const last = log.findLast((line) => typeof line['msg'] === 'string' && line['msg'].startsWith('DPU is'));
  return last?.['ready'] === alive ? true : undefined;
}

/** The names of the nodes that pass, directly from the extender's socket. */
async function askExtender(port: number, pod: KubePod): Promise<readonly string[]> {
  const body = JSON.stringify({ Pod: pod, Nodes: null, NodeNames: [DPU_NODE] });
  const answer = await fetch(`http://127.0.0.1:${port}/filter`, { method: 'POST', body });
  return ((await answer.json()) as { NodeNames: string[] | null }).NodeNames ?? [];
}

type Run = (context: DemoContext) => Promise<Readonly<Record<string, unknown>>>;

export const STEPS: readonly (readonly [name: string, title: string, run: Run])[] = [
  ['rejected', 'Without Plumbline: the kubelet rejects the VM', rejectedByKubelet],
  ['installed', 'Plumbline starts: webhook, scheduler extender, a node agent on each node', installPlumbline],
  ['placed', 'The same VM, annotated: padded to whole cores and placed near its NIC', paddedAndPlaced],
  ['switched', 'Open vSwitch leaves the CPUs of the VM', switchMovesOff],
  ['pinned', 'A VM with a CPU mask: started paused, pinned, resumed', maskedVmPinned],
  ['dpu-dead', 'A DPU dies: the extender refuses its node, and says why', dpuDies],
  ['dpu-back', 'The DPU is back: the waiting VM starts', dpuReturns],
];
