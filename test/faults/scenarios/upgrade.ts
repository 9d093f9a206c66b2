import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { PODS, VIRTUAL_MACHINES } from '../../../sandbox/api-server/built-in-types.ts';
import type { KubePod } from '../../../sandbox/objects.ts';
import { createRandom } from '../../lab/random.ts';
import { dist } from '../../support/bundles.ts';
import { previousRelease } from '../../support/previous.ts';
import { machine } from '../load.ts';
import { cpusOf } from '../observer/checks.ts';
import { ownedIn } from '../observer/observer.ts';
import { startAdmissionProbe } from '../world/admission-probe.ts';
import { DPU_NODE, VSWITCH_NODE } from '../world/nodes.ts';
import { createRollOut, type RollOut } from '../world/roll-out.ts';
import { NAMESPACE, type World } from '../world/world.ts';
import type { FaultContext, Scenario } from './scenario.ts';

/**
 * While its agent is replaced, a node has no device plugin: its kubelet fails a pod that was bound there just before.
 */
const DEVICE_PLUGIN_AWAY =
  /^kubelet: UnexpectedAdmissionError: .*(no healthy devices present|devices unavailable|rpc error)/;
/** VMs that run between two steps, so that components of two versions work together for a while. */
const DWELL = 25;
/** Seconds within which a permanent VM must run. */
const STARTED = 60;

/** VMs that run during the whole scenario. The first is alone on its node and gets CPUs that this machine has, too. */
const STAYING = [
  { name: 'stays-1', node: VSWITCH_NODE, physnet: 'physnet1' },
  { name: 'stays-2', node: 'one', physnet: 'physnet0' },
  { name: 'stays-3', node: DPU_NODE },
] as const;

export const UPGRADE: Scenario = {
  name: 'upgrade',
  title: 'every daemon is replaced by another release with its manifest’s rollout, and rolled back',
  on: ['real'],
  vms: 150,
  noRefusals: true,
  launchersMayFail: DEVICE_PLUGIN_AWAY,
  openVswitch: true,
  from: () => previousRelease()?.dist,
  prepare: startStaying,
  run: upgrade,
};

async function upgrade({ world, load, random, note }: FaultContext): Promise<void> {
  const previous = previousRelease();
  note(
    previous === undefined
      ? 'this build plays both releases; what parts of two releases make of each other was not tried'
      : `from the release in ${previous.name} to this build and back`,
  );
  const roll = createRollOut(world.daemons);
  const staying = stayingLaunchers(world);
  const probe = startAdmissionProbe(world);
  const dwell = () => Promise.race([load.running(load.placed + DWELL), load.done]);

  await dwell();
  const parts: (keyof RollOut)[] = ['webhook', 'extender', 'agent'];
  while (parts.length > 0) {
    const [part = 'agent'] = parts.splice(random.below(parts.length), 1);
    const [before, began] = [load.placed, performance.now()];
    await roll[part](dist);
    const seconds = ((performance.now() - began) / 1000).toFixed(0);
    note(`${part} replaced in ${seconds} s, in which ${load.placed - before} VMs ran`);
    await dwell();
  }
  const [before, began] = [load.placed, performance.now()];
  const back = previous?.dist ?? dist;
  await Promise.all([roll.webhook(back), roll.extender(back), roll.agent(back)]);
  const seconds = ((performance.now() - began) / 1000).toFixed(0);
  note(`all replaced back at once in ${seconds} s, in which ${load.placed - before} VMs ran`);
  await dwell();

  const { sent, failures } = await probe.stop();
  const { webhookRefused } = world.daemons;
  note(`${sent} reviews over new connections: ${failures.length} failed, ${webhookRefused} connections were refused`);
  if (failures.length > 0) throw new Error(`${failures.length} of ${sent} reviews failed: ${failures[0]}`);
  if (webhookRefused > 0) throw new Error(`${webhookRefused} connections to the webhook's Service were refused`);
  const gone = staying.filter(({ metadata: { uid } }) => !launchers(world).some((pod) => isRunning(pod, uid)));
  if (gone.length > 0)
    throw new Error(`VMs that were to stay have ended: ${gone.map(({ metadata }) => metadata.name)}`);
  note(`${staying.length} VMs ran all the time, next to ${world.ovs.kind}`);
}

async function startStaying(world: World): Promise<void> {
  const { client } = world.cluster;
  for (const { name, ...where } of STAYING)
    await client.create(VIRTUAL_MACHINES, machine(name, where, createRandom(1)));
  const deadline = performance.now() + STARTED * 1000;
  while (stayingLaunchers(world).length < STAYING.length) {
    if (performance.now() > deadline) throw new Error(`VMs that stay do not run after ${STARTED} s`);
    await delay(50);
  }
  const own = ownedIn(world.node(VSWITCH_NODE).kubeletDirectory).flatMap(({ cpus }) => cpus);
  const here = cpusOf(readFileSync('/sys/devices/system/cpu/online', 'utf8'));
  if (!own.some((cpu) => here.includes(cpu)))
    throw new Error(`the VM next to Open vSwitch has none of the CPUs ${here}`);
}

function stayingLaunchers(world: World): KubePod[] {
  const names: readonly string[] = STAYING.map(({ name }) => name);
  return launchers(world).filter(
    (pod) => names.includes(pod.metadata.labels?.['vm.kubevirt.io/name'] ?? '') && isRunning(pod),
  );
}

const launchers = ({ cluster: { client } }: World) =>
  client.list(PODS).filter(({ metadata }) => metadata.namespace === NAMESPACE);

function isRunning({ metadata, status }: KubePod, uid = metadata.uid): boolean {
  return metadata.uid === uid && status?.phase === 'Running' && metadata.deletionTimestamp === undefined;
}
