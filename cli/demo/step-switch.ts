import { availableParallelism } from 'node:os';
import { CpuSet, unionOf } from '../../model/cpu-set.ts';
import { type DemoContext, OVS_NODE } from './context.ts';
import { launcherOf } from './pods.ts';
import { FORWARDER, reportedCpus } from './step-padded.ts';
import { expect, until } from './until.ts';

/**
 * The threads are real, so only CPUs of this machine can be read back; the kernel does not support the emulated node's
 * other CPUs.
 */
export async function switchMovesOff({ cluster, printer, ovs, installed }: DemoContext) {
  const uid = launcherOf(cluster, FORWARDER)?.metadata.uid ?? '';
  const owned = reportedCpus(cluster, OVS_NODE, uid) ?? CpuSet.EMPTY;
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
  printer.lines([
    `${String(move['threads'])} threads moved ${String(move['millis'])} ms after the kubelet assigned the CPUs`,
  ]);
  return { threads: threads.length, allowed: unionOf(threads).toString(), moved: true, millis: move['millis'] };
}
