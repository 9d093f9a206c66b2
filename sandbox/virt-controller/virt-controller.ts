import { refText } from '../../model/networks/attachments.ts';
import { PODS, VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES } from '../api-server/built-in-types.ts';
import { ApiError } from '../api-server/errors.ts';
import { timestamp } from '../api-server/preparation.ts';
import { type LocalClient, undefinedNetwork, unlessNotFound } from '../clients/local-client.ts';
import { conditionsOf, type KubePod, type KubeVmi, setCondition } from '../objects.ts';
import { renderLauncherPod } from './launcher-pod.ts';
import { createMachineSync, hold, instanceStatusOf, isFinal, phaseOf, release } from './lifecycle.ts';

/** Before a retry. Source: client-go, default_rate_limiters.go. */
const FIRST_RETRY_SECONDS = 0.005;
const MAX_RETRY_SECONDS = 1000;

type Work = () => Promise<unknown>;

/**
 * A workqueue: one task at a time for each key, and one more for requests during it; `refused` and failed ones are
 * retried. A key's failures end with its first success, everything at `stop`.
 */
export class Workqueue {
  readonly #onFault: (error: unknown) => void;
  readonly #running = new Map<string, Promise<void>>();
  readonly #requeued = new Map<string, Work>();
  readonly #timers = new Set<NodeJS.Timeout>();
  readonly #failures = new Map<string, number>();
  #isStopped = false;

  constructor(onFault: (error: unknown) => void) {
    this.#onFault = onFault;
  }

  add(key: string, work: Work): void {
    if (this.#isStopped) return;
    if (this.#running.has(key)) this.#requeued.set(key, work);
    else this.#running.set(key, this.#run(key, work));
  }

  addAfter(key: string, seconds: number, work: Work): void {
    if (this.#isStopped) return;
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      this.add(key, work);
    }, seconds * 1000);
    this.#timers.add(timer);
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    for (const timer of this.#timers) clearTimeout(timer);
    await Promise.all(this.#running.values());
  }

  async #run(key: string, work: Work): Promise<void> {
    const outcome = await work().catch((error: unknown) => {
      this.#onFault(error);
      return 'refused' as const;
    });
    if (outcome === 'refused') {
      const failures = this.#failures.get(key) ?? 0;
      this.#failures.set(key, failures + 1);
      this.addAfter(key, Math.min(FIRST_RETRY_SECONDS * 2 ** failures, MAX_RETRY_SECONDS), work);
    } else this.#failures.delete(key);
    this.#running.delete(key);
    const next = this.#requeued.get(key);
    this.#requeued.delete(key);
    if (next) this.add(key, next);
  }
}

interface VirtControllerOptions {
  readonly client: LocalClient;
  readonly onFault?: (error: unknown) => void;
}

const COMPONENT = 'virtualmachine-controller';
const UNPAUSED = 'kubevirt.io/virtual-machine-unpaused';

/**
 * Also virt-handler. A machine gets another instance: at once if the last one had run, else after a growing delay. It
 * remembers the instances whose launcher was created, until the instance is deleted.
 */
export class VirtController {
  readonly #client: LocalClient;
  readonly #queue: Workqueue;
  readonly #syncMachine: ReturnType<typeof createMachineSync>;
  readonly #launched = new Set<string>();
  readonly #unfollow: (() => void)[] = [];

  constructor({ client, onFault = () => {} }: VirtControllerOptions) {
    this.#client = client;
    this.#queue = new Workqueue(onFault);
    this.#syncMachine = createMachineSync(client, this.#queue);
  }

  start(): void {
    this.#unfollow.push(
      this.#client.follow(VIRTUAL_MACHINES, ({ object: { metadata } }) => {
        this.#enqueueMachine(metadata.namespace, metadata.name);
      }),
      this.#client.follow(VIRTUAL_MACHINE_INSTANCES, ({ type, object: { metadata } }) => {
        if (type === 'DELETED') this.#launched.delete(metadata.uid ?? '');
        this.#enqueueInstance(metadata.namespace, metadata.name);
        this.#enqueueMachine(metadata.namespace, metadata.name);
      }),
      this.#client.follow(PODS, ({ object: { metadata } }) => {
        const owner = metadata.ownerReferences?.find(({ kind }) => kind === VIRTUAL_MACHINE_INSTANCES.kind);
        if (owner) this.#enqueueInstance(metadata.namespace, owner.name);
      }),
    );
  }

  async stop(): Promise<void> {
    for (const unfollow of this.#unfollow.splice(0)) unfollow();
    await this.#queue.stop();
  }

  #enqueueMachine(namespace = 'default', name: string): void {
    this.#queue.add(`vm/${namespace}/${name}`, () => this.#syncMachine(namespace, name));
  }

  #enqueueInstance(namespace = 'default', name: string): void {
    this.#queue.add(`vmi/${namespace}/${name}`, () => this.#syncInstance(namespace, name));
  }

  async #syncInstance(namespace: string, name: string): Promise<'refused' | undefined> {
    const client = this.#client;
    const vmi = client.get(VIRTUAL_MACHINE_INSTANCES, namespace, name);
    if (vmi === undefined) return undefined;
    if (vmi.metadata.deletionTimestamp) {
      await this.#end(vmi);
      return undefined;
    }
    let pod = this.#podOf(vmi);
    const { uid = '' } = vmi.metadata;
    if (!(await hold(client, VIRTUAL_MACHINE_INSTANCES, vmi))) return undefined;
    const ended = isFinal(vmi.status?.phase);
    // An instance whose launcher is gone gets no other. Its status may be older than the end of the launcher.
    const lost = !pod && this.#launched.has(uid);
    const isDue = !pod && !ended && !lost;
    if (isDue) pod = await createLauncher(client, vmi);
    if (pod) this.#launched.add(uid);
    if (pod?.spec.nodeName) await unpause(client, pod);
    const phase = lost && !ended ? 'Failed' : phaseOf(vmi, pod);
    await client.edit(VIRTUAL_MACHINE_INSTANCES, vmi, (draft) => {
      draft.status = instanceStatusOf(draft, phase, pod, timestamp(Date.now()));
    });
    // The webhook may recover, or the quota may be raised, without any change here.
    return isDue && !pod ? 'refused' : undefined;
  }

  #podOf(vmi: KubeVmi): KubePod | undefined {
    return this.#client
      .list(PODS)
      .find((pod) => pod.metadata.ownerReferences?.some(({ uid }) => uid === vmi.metadata.uid));
  }

  async #end(vmi: KubeVmi): Promise<void> {
    const pod = this.#podOf(vmi);
    if (!pod) await release(this.#client, VIRTUAL_MACHINE_INSTANCES, vmi);
    else if (!pod.metadata.deletionTimestamp) await this.#client.delete(PODS, pod);
  }
}

async function createLauncher(client: LocalClient, vmi: KubeVmi): Promise<KubePod | undefined> {
  const pod = renderLauncherPod(vmi);
  const missing = undefinedNetwork(client, pod);
  if (missing !== undefined) {
    // Source: KubeVirt, pkg/network/multus/nad.go
    const why = `failed to locate network attachment definition ${refText(missing)}`;
    await markFailed(client, vmi, `failed to render launch manifest: ${why}`);
    return undefined;
  }
  try {
    return await client.create(PODS, pod);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const message = `Error creating pod: ${error.message}`;
    await client.record(COMPONENT, vmi, { type: 'Warning', reason: 'FailedCreate', message });
    await markFailed(client, vmi, message);
    return undefined;
  }
}

async function markFailed(client: LocalClient, vmi: KubeVmi, message: string): Promise<void> {
  await client.edit<KubeVmi>(VIRTUAL_MACHINE_INSTANCES, vmi, (draft) => {
    const conditions = [...(draft.status?.conditions ?? [])];
    const failed = { type: 'Synchronized', status: 'False', reason: 'FailedCreate', message } as const;
    setCondition(conditions, failed, timestamp(Date.now()));
    draft.status = { ...draft.status, conditions };
  });
}

async function unpause(client: LocalClient, pod: KubePod): Promise<void> {
  const open = pod.status?.conditions?.some(({ type, status }) => type === UNPAUSED && status === 'True');
  if (open) return;
  const change = (draft: KubePod) => {
    setCondition(conditionsOf(draft), { type: UNPAUSED, status: 'True', reason: 'NotPaused' }, timestamp(Date.now()));
  };
  await client.edit(PODS, pod, change, 'status').catch(unlessNotFound);
}
