import { refText } from '../../model/networks/attachments.ts';
import { PODS, VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES } from '../api-server/built-in-types.ts';
import { ApiError } from '../api-server/errors.ts';
import { timestamp } from '../api-server/preparation.ts';
import { type LocalClient, undefinedNetwork, unlessNotFound } from '../clients/local-client.ts';
import { conditionsOf, type KubeObject, type KubePod, type KubeVmi, setCondition } from '../objects.ts';
import { renderLauncherPod } from './launcher-pod.ts';
import { createMachineSync, hold, instanceStatusOf, isFinal, phaseOf, release } from './lifecycle.ts';

export type Turns = ReturnType<typeof createTurns>;

/** Before a retry. Source: client-go, default_rate_limiters.go. */
const FIRST_RETRY_SECONDS = 0.005;
const MAX_RETRY_SECONDS = 1000;

type Work = () => Promise<unknown>;

/** One task at a time for each key, and one more for requests during it; `refused` and failed ones are retried. */
export function createTurns(onFault: (error: unknown) => void) {
  const busy = new Set<string>();
  const again = new Map<string, Work>();
  const running = new Set<Promise<void>>();
  const timers = new Set<NodeJS.Timeout>();
  const failures = new Map<string, number>();
  let stopped = false;

  const take = (key: string, work: Work) => {
    if (stopped) return;
    if (busy.has(key)) {
      again.set(key, work);
      return;
    }
    busy.add(key);
    const done = work()
      .catch((error: unknown) => {
        onFault(error);
        return 'refused' as const;
      })
      .then((outcome) => {
        const times = failures.get(key) ?? 0;
        if (outcome !== 'refused') return void failures.delete(key);
        failures.set(key, times + 1);
        takeLater(key, Math.min(FIRST_RETRY_SECONDS * 2 ** times, MAX_RETRY_SECONDS), work);
      })
      .finally(() => {
        busy.delete(key);
        running.delete(done);
        const next = again.get(key);
        again.delete(key);
        if (next) take(key, next);
      });
    running.add(done);
  };
  function takeLater(key: string, seconds: number, work: Work) {
    if (stopped) return;
    const timer = setTimeout(() => {
      timers.delete(timer);
      take(key, work);
    }, seconds * 1000);
    timers.add(timer);
  }
  return {
    take,
    takeLater,
    async stop() {
      stopped = true;
      for (const timer of timers) clearTimeout(timer);
      await Promise.all(running);
    },
  };
}

interface VirtControllerOptions {
  readonly client: LocalClient;
  readonly onFault?: (error: unknown) => void;
}

const COMPONENT = 'virtualmachine-controller';
const UNPAUSED = 'kubevirt.io/virtual-machine-unpaused';

/** Also virt-handler. A machine gets another instance: at once if the last one had run, else after a growing delay. */
export function createVirtController({ client, onFault = () => {} }: VirtControllerOptions) {
  const ends: (() => void)[] = [];
  const turns = createTurns(onFault);
  const launched = new Set<string>();

  const podOf = (vmi: KubeVmi) =>
    client.list(PODS).find((pod) => pod.metadata.ownerReferences?.some(({ uid }) => uid === vmi.metadata.uid));

  const syncMachine = createMachineSync(client, turns.takeLater);

  const end = async (vmi: KubeVmi) => {
    const pod = podOf(vmi);
    if (!pod) await release(client, VIRTUAL_MACHINE_INSTANCES, vmi);
    else if (!pod.metadata.deletionTimestamp) await client.delete(PODS, pod);
  };

  const syncInstance = async (namespace: string, name: string): Promise<'refused' | undefined> => {
    const vmi = client.get(VIRTUAL_MACHINE_INSTANCES, namespace, name);
    if (vmi === undefined) return undefined;
    if (vmi.metadata.deletionTimestamp) {
      await end(vmi);
      return undefined;
    }
    let pod = podOf(vmi);
    const { uid = '' } = vmi.metadata;
    if (!(await hold(client, VIRTUAL_MACHINE_INSTANCES, vmi))) return undefined;
    const ended = isFinal(vmi.status?.phase);
    // An instance whose launcher is gone gets no other. Its status may be older than the end of the launcher.
    const lost = !pod && launched.has(uid);
    const isDue = !pod && !ended && !lost;
    if (isDue) pod = await createPod(vmi);
    if (pod) launched.add(uid);
    if (pod?.spec.nodeName) await unpause(pod);
    const phase = lost && !ended ? 'Failed' : phaseOf(vmi, pod);
    await client.edit(VIRTUAL_MACHINE_INSTANCES, vmi, (draft) => {
      draft.status = instanceStatusOf(draft, phase, pod, timestamp(Date.now()));
    });
    // The webhook may recover, or the quota may be raised, without any change here.
    return isDue && !pod ? 'refused' : undefined;
  };

  const markFailed = (vmi: KubeVmi, message: string) =>
    client.edit<KubeVmi>(VIRTUAL_MACHINE_INSTANCES, vmi, (draft) => {
      const conditions = [...(draft.status?.conditions ?? [])];
      const failed = { type: 'Synchronized', status: 'False', reason: 'FailedCreate', message } as const;
      setCondition(conditions, failed, timestamp(Date.now()));
      draft.status = { ...draft.status, conditions };
    });

  async function createPod(vmi: KubeVmi): Promise<KubePod | undefined> {
    const pod = renderLauncherPod(vmi);
    const missing = undefinedNetwork(client, pod);
    if (missing !== undefined) {
      // Source: KubeVirt, pkg/network/multus/nad.go
      const why = `failed to locate network attachment definition ${refText(missing)}`;
      await markFailed(vmi, `failed to render launch manifest: ${why}`);
      return undefined;
    }
    try {
      return await client.create(PODS, pod);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      const message = `Error creating pod: ${error.message}`;
      await client.record(COMPONENT, vmi, { type: 'Warning', reason: 'FailedCreate', message });
      await markFailed(vmi, message);
      return undefined;
    }
  }

  async function unpause(pod: KubePod) {
    const open = pod.status?.conditions?.some(({ type, status }) => type === UNPAUSED && status === 'True');
    if (open) return;
    const change = (draft: KubePod) => {
      setCondition(conditionsOf(draft), { type: UNPAUSED, status: 'True', reason: 'NotPaused' }, timestamp(Date.now()));
    };
    await client.edit(PODS, pod, change, 'status').catch(unlessNotFound);
  }

  const onMachine = ({ object: { metadata } }: { object: KubeObject }) => {
    const { namespace = 'default', name } = metadata;
    turns.take(`vm/${namespace}/${name}`, () => syncMachine(namespace, name));
  };
  const onInstance = ({ type, object: { metadata } }: { type: string; object: KubeObject }) => {
    const { namespace = 'default', name, uid = '' } = metadata;
    if (type === 'DELETED') launched.delete(uid);
    turns.take(`vmi/${namespace}/${name}`, () => syncInstance(namespace, name));
    turns.take(`vm/${namespace}/${name}`, () => syncMachine(namespace, name));
  };
  const onPod = ({ object: pod }: { object: KubePod }) => {
    const owner = pod.metadata.ownerReferences?.find(({ kind }) => kind === VIRTUAL_MACHINE_INSTANCES.kind);
    const { namespace = 'default' } = pod.metadata;
    if (owner) turns.take(`vmi/${namespace}/${owner.name}`, () => syncInstance(namespace, owner.name));
  };

  return {
    start() {
      ends.push(
        client.follow(VIRTUAL_MACHINES, onMachine),
        client.follow(VIRTUAL_MACHINE_INSTANCES, onInstance),
        client.follow(PODS, onPod),
      );
    },
    async stop() {
      for (const end of ends.splice(0)) end();
      await turns.stop();
    },
  };
}
