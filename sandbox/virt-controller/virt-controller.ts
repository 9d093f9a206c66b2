import { isFinalPhase } from '../../kube/cluster-view/pods.ts';
import { formatTime } from '../../model/lease/timing.ts';
import { refText } from '../../model/networks/attachments.ts';
import { WorkQueue } from '../../runtime/work-queue.ts';
import { PODS, VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES } from '../api-server/built-in-types.ts';
import { ApiError, unlessNotFound } from '../api-server/errors.ts';
import { type LocalClient, undefinedNetwork } from '../clients/local-client.ts';
import { conditionsOf, hasCondition, type KubePod, type KubeVmi, setCondition } from '../objects.ts';
import { renderLauncherPod } from './launcher-pod.ts';
import {
  createMachineSync,
  guestPodOf,
  hold,
  instanceStatusOf,
  NODE_NAME_LABEL,
  phaseOf,
  podsOf,
  release,
  type Work,
} from './lifecycle.ts';
import { DEFAULT_MIGRATION_SETTINGS, MigrationController, type MigrationSettings } from './migrations.ts';

interface VirtControllerOptions {
  readonly client: LocalClient;
  readonly migrations?: Partial<MigrationSettings> | undefined;
  /** Ends the containers of a launcher whose guest has migrated. Default: they run on. */
  readonly exit?: (pod: KubePod) => Promise<void>;
  readonly onFault?: (error: unknown) => void;
}

const COMPONENT = 'virtualmachine-controller';
const UNPAUSED = 'kubevirt.io/virtual-machine-unpaused';
/** Source: client-go, default_rate_limiters.go. */
const BACKOFF = { firstRetryMilliseconds: 5, maxRetryMilliseconds: 1_000_000 };

/**
 * Also virt-handler. A machine gets another instance: at once if the last one had run, else after a growing delay. It
 * remembers the instances whose launcher was created, until the instance is deleted.
 */
export class VirtController {
  readonly #client: LocalClient;
  readonly #queue: WorkQueue<Work>;
  readonly #syncMachine: ReturnType<typeof createMachineSync>;
  readonly #migrations: MigrationController;
  readonly #launched = new Set<string>();
  readonly #unfollow: (() => void)[] = [];

  constructor({ client, migrations, exit = async () => {}, onFault = () => {} }: VirtControllerOptions) {
    this.#client = client;
    this.#queue = new WorkQueue({
      ...BACKOFF,
      work: async (work) => ((await work()) === 'refused' ? 'retry' : 'done'),
      onFault,
    });
    this.#syncMachine = createMachineSync(client, this.#queue);
    const settings = { ...DEFAULT_MIGRATION_SETTINGS, ...migrations };
    this.#migrations = new MigrationController({ client, queue: this.#queue, settings, exit });
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
      ...this.#migrations.start(),
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

  async #syncInstance(namespace: string, name: string): Promise<unknown> {
    const client = this.#client;
    const vmi = client.get(VIRTUAL_MACHINE_INSTANCES, namespace, name);
    if (vmi === undefined) return undefined;
    if (vmi.metadata.deletionTimestamp) return this.#end(vmi);
    const pods = podsOf(client, vmi);
    const pod = guestPodOf(vmi, pods);
    const { uid = '' } = vmi.metadata;
    if (!(await hold(client, VIRTUAL_MACHINE_INSTANCES, vmi))) return undefined;
    const ended = isFinalPhase(vmi.status?.phase);
    // An instance whose launcher is gone gets no other. Its status may be older than the end of the launcher.
    const isPodGone = !pod && this.#launched.has(uid);
    const isDue = !pod && !ended && !isPodGone;
    const created = isDue ? await createLauncher(client, vmi) : undefined;
    if (created) pods.push(created);
    if (pod ?? created) this.#launched.add(uid);
    for (const launcher of pods) {
      if (launcher.spec.nodeName && !isFinalPhase(launcher.status?.phase)) await unpause(client, launcher);
    }
    await client.edit(VIRTUAL_MACHINE_INSTANCES, vmi, (draft) => {
      const guest = guestPodOf(draft, pods);
      const phase = isPodGone && !ended ? 'Failed' : phaseOf(draft, guest);
      draft.status = instanceStatusOf(draft, phase, guest, pods);
      const { nodeName } = draft.status;
      if (nodeName !== undefined) draft.metadata.labels = { ...draft.metadata.labels, [NODE_NAME_LABEL]: nodeName };
    });
    // The webhook may recover, or the quota may be raised, without any change here.
    return isDue && !created ? 'refused' : undefined;
  }

  async #end(vmi: KubeVmi): Promise<void> {
    const pods = podsOf(this.#client, vmi);
    if (pods.length === 0) await release(this.#client, VIRTUAL_MACHINE_INSTANCES, vmi);
    for (const pod of pods) if (!pod.metadata.deletionTimestamp) await this.#client.delete(PODS, pod);
  }
}

async function createLauncher(client: LocalClient, vmi: KubeVmi): Promise<KubePod | undefined> {
  const pod = renderLauncherPod(vmi);
  const missing = undefinedNetwork(client, pod);
  if (missing !== undefined) {
    // Source: KubeVirt, pkg/network/multus/nad.go
    const why = `failed to locate network attachment definition ${refText(missing)}`;
    return markFailed(client, vmi, `failed to render launch manifest: ${why}`);
  }
  try {
    return await client.create(PODS, pod);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const message = `Error creating pod: ${error.message}`;
    await client.record(COMPONENT, vmi, { type: 'Warning', reason: 'FailedCreate', message });
    return markFailed(client, vmi, message);
  }
}

async function markFailed(client: LocalClient, vmi: KubeVmi, message: string): Promise<undefined> {
  const failed = { type: 'Synchronized', status: 'False', reason: 'FailedCreate', message };
  await client.edit(VIRTUAL_MACHINE_INSTANCES, vmi, (draft) => {
    setCondition(conditionsOf(draft), failed, formatTime(Date.now()));
  });
}

async function unpause(client: LocalClient, pod: KubePod): Promise<void> {
  if (hasCondition(pod, UNPAUSED, 'True')) return;
  const change = (draft: KubePod) => {
    setCondition(conditionsOf(draft), { type: UNPAUSED, status: 'True', reason: 'NotPaused' }, formatTime(Date.now()));
  };
  await client.edit(PODS, pod, change, 'status').catch(unlessNotFound);
}
