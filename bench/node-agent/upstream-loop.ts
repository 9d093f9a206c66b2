import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createPodResourcesClient, POD_RESOURCES_SOCKET } from '../../kube/kubelet-api/pod-resources-client.ts';
import { CpuSet, unionOf } from '../../model/cpu-set.ts';
import { createAffinity } from '../../native/affinity.ts';

/**
 * The loop of other implementations of dynamic CPU affinity for Open vSwitch, written from its description, as a
 * reference. Every second it queries the kubelet for allocatable and assigned CPUs. The remaining CPUs and the reserved
 * ones are set for every thread of a daemon whose main thread does not have them.
 *
 * Usage: upstream-loop.ts <directory>, as for program-stage.ts. Sends a message after it has moved threads.
 */
const [directory = ''] = process.argv.slice(2);
const client = createPodResourcesClient(join(directory, 'kubelet', POD_RESOURCES_SOCKET));
const affinity = createAffinity();
const online = CpuSet.parse(readFileSync('/sys/devices/system/cpu/online', 'utf8'));
let reserved: CpuSet | undefined;

async function tick(): Promise<void> {
  const allocatable = CpuSet.of((await client.allocatable()).cpuIds);
  reserved ??= online.minus(allocatable);
  const pods = await client.list();
  const owned = unionOf(pods.flatMap(({ containers }) => containers.map(({ cpuIds }) => CpuSet.of(cpuIds))));
  const goal = allocatable.minus(owned).union(reserved);
  const moved = ['ovs-vswitchd', 'ovsdb-server'].map((name) => apply(name, goal));
  if (moved.includes(true)) process.send?.({ done: process.hrtime.bigint().toString() });
}

function apply(name: string, goal: CpuSet): boolean {
  const pid = Number(readFileSync(join(directory, 'run', `${name}.pid`), 'utf8'));
  if (CpuSet.fromWords(affinity.get(pid)).equals(goal)) return false;
  for (const tid of readdirSync(`/proc/${pid}/task`)) affinity.set(Number(tid), goal.toWords(2));
  return true;
}

/** A thread that ends during a turn, or a kubelet that does not respond, only costs one turn. */
const turn = () => tick().catch((error: unknown) => console.error(String(error)));

setInterval(turn, 1000);
void turn().then(() => process.send?.({ done: process.hrtime.bigint().toString() }));
