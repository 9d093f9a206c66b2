import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { SCHEDULER } from '../../../model/names.ts';
import { PODS, VIRTUAL_MACHINES } from '../../../sandbox/api-server/built-in-types.ts';
import type { KubePod } from '../../../sandbox/objects.ts';
import { createRandom } from '../../lab/random.ts';
import { objectsOf, render } from '../../real/install/rendered-fixture.ts';
import { dist, root } from '../../support/bundles.ts';
import { until } from '../../support/until.ts';
import { machine } from '../load.ts';
import { cpusOf } from '../observer/checks.ts';
import { ownedIn } from '../observer/observer.ts';
import { startAdmissionProbe } from '../world/admission-probe.ts';
import type { Daemons } from '../world/daemons.ts';
import { DPU_NODE, VSWITCH_NODE } from '../world/nodes.ts';
import type { Replicas } from '../world/replicas.ts';
import { NAMESPACE, type World } from '../world/world.ts';
import type { FaultContext, Scenario } from './scenario.ts';

/** While its agent is replaced, a node has no device plugin: its kubelet fails a pod that has just been bound there. */
const DEVICE_PLUGIN_AWAY =
  /^kubelet: UnexpectedAdmissionError: .*(no healthy devices present|devices unavailable|rpc error)/;
/** VMs that run between two steps, so that components of two versions work together for a while. */
const DWELL = 25;

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
  await until('the VMs that stay to run', () => stayingLaunchers(world).length === STAYING.length);
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

/** Seconds within which a replaced pod must be ready. */
const READY = 60;

interface Update {
  readonly maxSurge?: number | string;
  readonly maxUnavailable?: number | string;
}

interface Workload {
  readonly spec: {
    readonly replicas?: number;
    readonly strategy?: { readonly rollingUpdate?: Update };
    readonly updateStrategy?: { readonly rollingUpdate?: Update };
  };
}

type RollOut = ReturnType<typeof createRollOut>;

function createRollOut({ webhooks, extenders, agents }: Daemons) {
  const objects = objectsOf(render('base'));
  const shipped = (kind: string, name: string): Workload['spec'] => {
    const workload = objects.find((object) => object.kind === kind && object.metadata.name === name);
    if (workload === undefined) throw new Error(`the base has no ${kind} ${name}`);
    return (workload as unknown as Workload).spec;
  };
  return {
    webhook: (dist: string) => rollDeployment(webhooks, dist, shipped('Deployment', 'plumbline-webhook')),
    extender: (dist: string) => rollDeployment(extenders, dist, shipped('Deployment', SCHEDULER)),
    async agent(dist: string) {
      const update = shipped('DaemonSet', 'plumbline-node-agent').updateStrategy?.rollingUpdate;
      // For a DaemonSet, a percentage is rounded up.
      const most = Math.ceil(shareOf(update?.maxUnavailable ?? 1, agents.length));
      for (let i = 0; i < agents.length; i += most) {
        await Promise.all(
          agents.slice(i, i + most).map(async (agent) => {
            await agent.replace(`${dist}/node-agent.cjs`);
            await agent.ready(READY);
          }),
        );
      }
    },
  };
}

/** Kubernetes' default is 25 % each: maxSurge is rounded up, maxUnavailable is rounded down. */
async function rollDeployment(set: Replicas, dist: string, { replicas = 1, strategy }: Workload['spec']) {
  const { maxSurge = '25%', maxUnavailable = '25%' } = strategy?.rollingUpdate ?? {};
  const more = Math.ceil(shareOf(maxSurge, replicas));
  const fewer = Math.floor(shareOf(maxUnavailable, replicas));
  if (replicas !== set.pods.length)
    throw new Error(`the manifest has ${replicas} replicas, here are ${set.pods.length}`);
  for (let left = replicas; left > 0; ) {
    const batch = Math.min(left, Math.max(1, more + fewer));
    const ending = async () => {
      for (let i = 0; i < batch; i++) await set.removeOldest();
    };
    // Pods that may be missing end before the new ones are ready, the others after.
    if (fewer > 0) await ending();
    for (let i = 0; i < batch; i++) await set.add(dist);
    if (fewer === 0) await ending();
    left -= batch;
  }
}

function shareOf(value: number | string, of: number): number {
  return typeof value === 'number' ? value : (of * Number.parseFloat(value)) / 100;
}

interface PreviousRelease {
  readonly dist: string;
  readonly name: string;
}

let builtRelease: PreviousRelease | undefined;

/** From the folder in PLUMBLINE_PREVIOUS, otherwise built from the newest release tag; undefined without either. */
function previousRelease(): PreviousRelease | undefined {
  const folder = process.env['PLUMBLINE_PREVIOUS'];
  if (folder !== undefined && folder !== '') {
    const dist = resolve(root, folder);
    for (const name of ['webhook', 'scheduler-plugin', 'node-agent']) {
      if (!existsSync(join(dist, `${name}.cjs`))) throw new Error(`PLUMBLINE_PREVIOUS: ${dist} has no ${name}.cjs`);
    }
    return { dist, name: folder };
  }
  const tag = newestRelease(root);
  if (tag === undefined) return undefined;
  builtRelease ??= build(tag);
  return builtRelease;
}

function newestRelease(repository: string): string | undefined {
  const git = (...args: string[]) => spawnSync('git', args, { cwd: repository, encoding: 'utf8' }).stdout ?? '';
  const own = new Set(git('tag', '--points-at', 'HEAD').split('\n'));
  return git('tag', '--list', 'v[0-9]*', '--merged', 'HEAD', '--sort=-version:refname')
    .split('\n')
    .find((tag) => /^v\d+\.\d+\.\d+$/.test(tag) && !own.has(tag));
}

function build(tag: string): PreviousRelease {
  const directory = mkdtempSync(join(tmpdir(), 'plumbline-previous-'));
  process.once('exit', () => rmSync(directory, { recursive: true, force: true }));
  const archive = execFileSync('git', ['archive', tag], { cwd: root, maxBuffer: 256 * 1024 * 1024 });
  execFileSync('tar', ['-x', '-C', directory], { input: archive });
  const lock = (folder: string) => readFileSync(join(folder, 'package-lock.json'), 'utf8');
  if (lock(directory) === lock(root)) symlinkSync(join(root, 'node_modules'), join(directory, 'node_modules'));
  else execFileSync('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], { cwd: directory, stdio: 'pipe' });
  const env = { ...process.env, PLUMBLINE_DIST: join(directory, 'dist') };
  execFileSync('npm', ['run', '--silent', 'build'], { cwd: directory, env, stdio: 'pipe' });
  return { dist: env.PLUMBLINE_DIST, name: tag };
}
