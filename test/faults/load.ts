import { setTimeout as delay } from 'node:timers/promises';
import { FULL_PCPUS_ANNOTATION, FULL_PCPUS_ONLY } from '../../model/names.ts';
import { EVENTS, PODS, VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES } from '../../sandbox/api-server/built-in-types.ts';
import { at, type KubeObject, type KubePod } from '../../sandbox/objects.ts';
import { createRandom, type Random } from '../lab/random.ts';
import { GROUPS, type Group } from './world/nodes.ts';
import { NAMESPACE, type World } from './world/world.ts';

export type Load = ReturnType<typeof startLoad>;

export interface LoadOptions {
  readonly world: World;
  readonly seed: number;
  readonly vms: number;
}

/** Minimum number of VMs that are created after the end of the fault. */
const AFTER = 20;
/** Lifetime of a VM in milliseconds: at least the first, less than the second. */
const [MIN_LIFE_MILLISECONDS, MAX_LIFE_MILLISECONDS] = [50, 400];

const CHECK_MILLISECONDS = 10;

export function startLoad({ world, seed, vms }: LoadOptions) {
  const { client } = world.cluster;
  const stopping = new AbortController();
  const ended = new Map<string, number>();
  const refusedAdmissions = new Map<string, number>();
  const waiting = new Map<string, number>();
  const state = {
    placed: 0,
    slowest: 0,
    left: vms,
    names: 0,
    after: 0,
    healthySince: undefined as number | undefined,
    limit: 0,
  };
  const watched = watchPods(world);
  const endFollow = client.follow(EVENTS, ({ type, object }) => {
    if (type === 'DELETED' || object['reason'] !== 'FailedCreate') return;
    count(refusedAdmissions, String(object['message']));
  });

  const waitedSince = (since: number) => performance.now() - Math.max(since, state.healthySince ?? since);
  const assertNobodyWaits = () => {
    if (state.healthySince === undefined) return;
    for (const [name, since] of waiting) {
      if (waitedSince(since) > state.limit * 1000)
        throw new Error(`${name} waits for ${state.limit} s: ${lastHeard(world, name)}`);
    }
  };
  /** VMs come and go during the fault, and some are created after it. */
  const goesOn = () => state.left > 0 || state.healthySince === undefined || state.after < AFTER;
  const run = async (group: Group): Promise<void> => {
    while (goesOn() && !stopping.signal.aborted) {
      state.left--;
      if (state.healthySince !== undefined) state.after++;
      const number = state.names++;
      const name = `${group.name}-${number}`;
      const random = createRandom(seed + number);
      await client.create(VIRTUAL_MACHINES, machine(name, group, random));
      waiting.set(name, performance.now());
      const outcome = await watched.outcome(name, stopping.signal, assertNobodyWaits);
      const since = waiting.get(name) ?? 0;
      waiting.delete(name);
      if (outcome === 'Running') {
        state.placed++;
        if (state.healthySince !== undefined) state.slowest = Math.max(state.slowest, waitedSince(since) / 1000);
        await delay(MIN_LIFE_MILLISECONDS + random.below(MAX_LIFE_MILLISECONDS - MIN_LIFE_MILLISECONDS));
      } else {
        count(ended, outcome);
        state.left++;
      }
      await remove(world, name);
      await watched.gone(name, stopping.signal, assertNobodyWaits);
    }
  };
  const slots = GROUPS.flatMap((group) => Array.from({ length: group.live }, () => group));
  const done = Promise.all(slots.map(run)).then(
    () => undefined,
    (error: unknown) => {
      if (!stopping.signal.aborted) throw error;
    },
  );
  done.catch(() => undefined);
  return {
    /** Resolves when the required VMs have run and the fault is over, rejects when one waits for too long. */
    done,
    ended,
    refusedAdmissions,
    get placed() {
      return state.placed;
    },
    get left() {
      return state.left;
    },
    async running(wanted: number) {
      while (state.placed < wanted && !stopping.signal.aborted) await delay(20);
    },
    /** Seconds that the slowest VM waited: since its creation, or since the end of the fault if that was later. */
    get slowest() {
      return state.slowest;
    },
    /** Marks the end of the fault: from now on no pod may wait longer than `seconds`. */
    healthy(seconds: number) {
      state.healthySince = performance.now();
      state.limit = seconds;
    },
    stop() {
      stopping.abort();
      endFollow();
      watched.stop();
    },
  };
}

function watchPods({ cluster: { client } }: World) {
  const pods = new Map<string, KubePod>();
  const vmOf = ({ metadata }: KubePod) => metadata.labels?.['vm.kubevirt.io/name'] ?? '';
  const stop = client.follow(PODS, ({ type, object }) => {
    if (object.metadata.namespace !== NAMESPACE) return;
    const name = vmOf(object);
    if (type !== 'DELETED') pods.set(name, object);
    else if (pods.get(name)?.metadata.uid === object.metadata.uid) pods.delete(name);
  });
  const wait = async <T>(signal: AbortSignal, check: () => void, look: () => T | undefined): Promise<T> => {
    for (;;) {
      const found = look();
      if (found !== undefined) return found;
      check();
      signal.throwIfAborted();
      await delay(CHECK_MILLISECONDS);
    }
  };
  return {
    stop,
    outcome(name: string, signal: AbortSignal, check: () => void): Promise<string> {
      return wait(signal, check, () => {
        const pod = pods.get(name);
        const phase = pod?.status?.phase;
        if (phase === 'Running') return 'Running';
        if (phase === 'Failed') return `kubelet: ${String(pod?.status?.reason)}: ${String(pod?.status?.message)}`;
        const vmi = client.get(VIRTUAL_MACHINE_INSTANCES, NAMESPACE, name);
        if (pod === undefined && at(vmi, 'status', 'phase') === 'Failed') return 'evicted';
        return undefined;
      });
    },
    gone: (name: string, signal: AbortSignal, check: () => void) =>
      wait(signal, check, () => (pods.has(name) ? undefined : true)),
  };
}

async function remove({ cluster: { client } }: World, name: string): Promise<void> {
  const metadata = { name, namespace: NAMESPACE };
  await client.delete(VIRTUAL_MACHINES, { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', metadata });
}

export function machine(name: string, { physnet, node }: Pick<Group, 'physnet' | 'node'>, random: Random): KubeObject {
  const cores = random.oneOf([1, 2]);
  const cpu = { sockets: 1, cores, threads: 2, dedicatedCpuPlacement: true, isolateEmulatorThread: true };
  const networks = physnet === undefined ? [] : [{ name: 'dataplane', multus: { networkName: physnet } }];
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name, namespace: NAMESPACE },
    spec: {
      runStrategy: 'Always',
      template: {
        metadata: { annotations: { [FULL_PCPUS_ANNOTATION]: FULL_PCPUS_ONLY } },
        spec: {
          ...(node !== undefined && { nodeSelector: { 'kubernetes.io/hostname': node } }),
          domain: { cpu, memory: { guest: '1Gi' }, devices: {} },
          networks: [{ name: 'default', pod: {} }, ...networks],
        },
      },
    },
  };
}

function lastHeard({ cluster: { client } }: World, name: string): string {
  const involved = (event: KubeObject) => String(at(event, 'involvedObject', 'name'));
  const messages = client
    .list(EVENTS)
    .filter((event) => involved(event) === name || involved(event).startsWith(`virt-launcher-${name}-`))
    .map((event) => String(event['message']));
  return messages.at(-1) ?? 'nothing was heard of it';
}

function count(counts: Map<string, number>, what: string): void {
  counts.set(what, (counts.get(what) ?? 0) + 1);
}
