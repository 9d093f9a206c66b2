import { isFinalPhase } from '../../kube/cluster-view/pods.ts';
import { MIGRATION_LABEL } from '../../model/launcher/recognize.ts';
import { formatTime } from '../../model/lease/timing.ts';
import type { WorkQueue } from '../../runtime/work-queue.ts';
import { apiVersionOf, MIGRATIONS, PODS, VIRTUAL_MACHINE_INSTANCES } from '../api-server/built-in-types.ts';
import { ApiError, unlessNotFound } from '../api-server/errors.ts';
import { isActive, MIGRATION_FINALIZER } from '../api-server/migrations.ts';
import type { LocalClient } from '../clients/local-client.ts';
import type { KubeMigration, KubePod, KubeVmi, Meta, MigrationPhase } from '../objects.ts';
import { renderMigrationTarget } from './launcher-pod.ts';
import { guestPodOf, NODE_NAME_LABEL, podsOf, release, type Work } from './lifecycle.ts';

export interface MigrationSettings {
  /** Seconds in which a guest's memory is copied. */
  readonly copySeconds: number;
  /** Seconds after which a target without a node makes its migration fail. */
  readonly unschedulableSeconds: number;
}

/** The time limit is KubeVirt's. */
export const DEFAULT_MIGRATION_SETTINGS: MigrationSettings = { copySeconds: 1, unschedulableSeconds: 300 };

/** KubeVirt's defaults: parallelMigrationsPerCluster and parallelOutboundMigrationsPerNode. */
const MAX_PARALLEL = 5;
const MAX_PARALLEL_OF_NODE = 2;

/** Before another attempt to empty a node; doubled after each failure. */
const FIRST_BACKOFF_SECONDS = 20;
const MAX_BACKOFF_SECONDS = 300;

const EVACUATION = 'kubevirt.io/evacuationMigration';

interface MigrationControllerOptions {
  readonly client: LocalClient;
  readonly queue: WorkQueue<Work>;
  readonly settings: MigrationSettings;
  /** Ends the containers of a launcher whose guest has left it. */
  readonly exit: (pod: KubePod) => Promise<void>;
}

/** What a step of a migration is about. */
interface Parts {
  readonly migration: KubeMigration;
  readonly vmi: KubeVmi | undefined;
  readonly target: KubePod | undefined;
}

const now = () => formatTime(Date.now());
const secondsSince = (time: string | undefined) => (Date.now() - Date.parse(time ?? '')) / 1000;

/**
 * KubeVirt's controllers of migrations and evacuations, and virt-handler's hand-over. Each call makes one step, whose
 * write causes the next. It remembers nothing: everything is in the migrations and the status of their instances.
 */
export class MigrationController {
  readonly #client: LocalClient;
  readonly #queue: WorkQueue<Work>;
  readonly #settings: MigrationSettings;
  readonly #exit: MigrationControllerOptions['exit'];

  constructor({ client, queue, settings, exit }: MigrationControllerOptions) {
    this.#client = client;
    this.#queue = queue;
    this.#settings = settings;
    this.#exit = exit;
  }

  /** Returns functions that end this. */
  start(): (() => void)[] {
    return [
      this.#client.follow(MIGRATIONS, ({ type, object }) => {
        this.#enqueue(object.metadata);
        if (type !== 'DELETED' && isActive(object)) return;
        // It has left a place for another one; its instance may still be on a node that is drained.
        for (const other of this.#client.list(MIGRATIONS).filter(isActive)) this.#enqueue(other.metadata);
        this.#enqueueEvacuation(object.metadata.namespace, object.spec.vmiName);
      }),
      this.#client.follow(VIRTUAL_MACHINE_INSTANCES, ({ object: { metadata } }) => {
        for (const migration of this.#migrationsOf(metadata)) this.#enqueue(migration.metadata);
        this.#enqueueEvacuation(metadata.namespace, metadata.name);
      }),
      this.#client.follow(PODS, ({ object: { metadata } }) => {
        const uid = metadata.labels?.[MIGRATION_LABEL];
        const migrationOfPod = this.#client.list(MIGRATIONS).find((migration) => migration.metadata.uid === uid);
        if (migrationOfPod !== undefined) this.#enqueue(migrationOfPod.metadata);
      }),
    ];
  }

  #targetOf({ metadata: { uid } }: KubeMigration) {
    return this.#client.list(PODS).find(({ metadata }) => metadata.labels?.[MIGRATION_LABEL] === uid);
  }

  #instanceOf({ metadata: { namespace }, spec }: KubeMigration) {
    return this.#client.get(VIRTUAL_MACHINE_INSTANCES, namespace, spec.vmiName);
  }

  #migrationsOf({ namespace, name }: Meta) {
    return this.#client
      .list(MIGRATIONS)
      .filter(({ metadata, spec }) => metadata.namespace === namespace && spec.vmiName === name);
  }

  #enqueue({ namespace = 'default', name }: Meta, afterSeconds = 0): void {
    const key = `migration/${namespace}/${name}`;
    const work = () => this.#sync(namespace, name);
    if (afterSeconds > 0) this.#queue.addAfter(key, work, afterSeconds * 1000);
    else this.#queue.add(key, work);
  }

  #enqueueEvacuation(namespace = 'default', name: string): void {
    this.#queue.add(`evacuation/${namespace}/${name}`, () => this.#evacuate(namespace, name));
  }

  async #enter(migration: KubeMigration, phase: MigrationPhase, end: object = {}): Promise<void> {
    const started = phase === 'Running' ? { startTimestamp: now() } : {};
    const change = (draft: KubeMigration) => {
      const migrationState = { ...draft.status?.migrationState, ...started, ...end };
      draft.status = { ...draft.status, phase, migrationState };
    };
    await this.#client.edit(MIGRATIONS, migration, change, 'status').catch(unlessNotFound);
  }

  async #fail({ migration, vmi, target }: Parts, failureReason: string, isCancelled = false) {
    const end = {
      completed: true,
      failed: true,
      endTimestamp: now(),
      failureReason,
      ...(isCancelled && { abortRequested: true, abortStatus: 'Succeeded' }),
    };
    if (vmi?.status?.migrationState?.migrationUid === migration.metadata.uid && vmi !== undefined) {
      const change = ({ status }: KubeVmi) => {
        if (status !== undefined) status.migrationState = { ...status.migrationState, ...end };
      };
      await this.#client.edit(VIRTUAL_MACHINE_INSTANCES, vmi, change).catch(unlessNotFound);
    }
    if (target !== undefined) await this.#client.delete(PODS, target);
    await this.#enter(migration, 'Failed', end);
  }

  /** Creates a migration for an instance that is asked to leave its node. */
  async #evacuate(namespace: string, name: string): Promise<void> {
    const vmi = this.#client.get(VIRTUAL_MACHINE_INSTANCES, namespace, name);
    const { nodeName, evacuationNodeName, phase } = vmi?.status ?? {};
    if (vmi?.metadata.deletionTimestamp || phase !== 'Running' || evacuationNodeName === undefined) return;
    if (evacuationNodeName !== nodeName || this.#migrationsOf({ namespace, name }).some(isActive)) return;
    const annotations = { [EVACUATION]: evacuationNodeName };
    const migration: KubeMigration = {
      apiVersion: apiVersionOf(MIGRATIONS),
      kind: MIGRATIONS.kind,
      metadata: { name: '', generateName: 'kubevirt-evacuation-', namespace, annotations },
      spec: { vmiName: name },
    };
    await this.#client.create(MIGRATIONS, migration).catch((error: unknown) => {
      // The instance changed, or someone else migrates it.
      if (!(error instanceof ApiError)) throw error;
    });
  }

  async #sync(namespace: string, name: string): Promise<unknown> {
    const migration = this.#client.get(MIGRATIONS, namespace, name);
    if (migration === undefined) return undefined;
    const { deletionTimestamp } = migration.metadata;
    if (!isActive(migration))
      return deletionTimestamp && release(this.#client, MIGRATIONS, migration, MIGRATION_FINALIZER);
    const vmi = this.#instanceOf(migration);
    const target = this.#targetOf(migration);
    const parts = { migration, vmi, target };
    if (vmi === undefined || vmi.metadata.deletionTimestamp || isFinalPhase(vmi.status?.phase)) {
      return this.#fail(parts, 'the VMI has ended');
    }
    if (deletionTimestamp) return this.#fail(parts, 'the migration was cancelled', true);
    const source = guestPodOf(vmi, podsOf(this.#client, vmi));
    if (source === undefined || vmi.status?.phase !== 'Running') return undefined;
    const { phase } = migration.status ?? {};
    if (phase === undefined) return this.#enter(migration, 'Pending');
    if (phase === 'Pending') return this.#createTarget(migration, vmi);
    if (target === undefined || target.metadata.deletionTimestamp || isFinalPhase(target.status?.phase)) {
      return this.#fail(parts, 'Migration target pod is gone or has ended');
    }
    if (phase === 'Scheduling') return this.#schedule(migration, vmi, target);
    if (phase === 'Scheduled') return this.#prepare(migration, vmi, source, target);
    if (phase === 'PreparingTarget') return this.#enter(migration, 'TargetReady');
    if (phase === 'TargetReady') return this.#enter(migration, 'Running');
    return this.#handOver(migration, vmi, source, target);
  }

  async #createTarget(migration: KubeMigration, vmi: KubeVmi): Promise<unknown> {
    if (this.#targetOf(migration) !== undefined) return this.#enter(migration, 'Scheduling');
    const pause = this.#backoffSeconds(migration, vmi);
    if (pause > 0) return this.#enqueue(migration.metadata, pause);
    if (!this.#hasRoom(migration, vmi)) return undefined;
    try {
      await this.#client.create(PODS, renderMigrationTarget(vmi, migration));
    } catch (error) {
      // The webhook may recover, or the quota may be raised, without any change here.
      if (error instanceof ApiError) return 'refused';
      throw error;
    }
    return this.#enter(migration, 'Scheduling');
  }

  #hasRoom({ metadata: { uid } }: KubeMigration, vmi: KubeVmi) {
    const running = this.#client.list(MIGRATIONS).filter((one) => isActive(one) && this.#targetOf(one) !== undefined);
    const others = running.filter(({ metadata }) => metadata.uid !== uid);
    const ofNode = others.filter((other) => this.#instanceOf(other)?.status?.nodeName === vmi.status?.nodeName);
    return others.length < MAX_PARALLEL && ofNode.length < MAX_PARALLEL_OF_NODE;
  }

  /** Seconds until another attempt to move an instance off its node. */
  #backoffSeconds({ metadata: { annotations } }: KubeMigration, { metadata, status }: KubeVmi) {
    if (annotations?.[EVACUATION] === undefined) return 0;
    const failed = this.#migrationsOf(metadata).filter((earlier) => {
      return earlier.status?.phase === 'Failed' && earlier.metadata.annotations?.[EVACUATION] === status?.nodeName;
    });
    if (failed.length === 0) return 0;
    const ended = failed.map((earlier) => secondsSince(earlier.status?.migrationState?.endTimestamp));
    return Math.min(MAX_BACKOFF_SECONDS, FIRST_BACKOFF_SECONDS * 2 ** (failed.length - 1)) - Math.min(...ended);
  }

  async #schedule(migration: KubeMigration, vmi: KubeVmi, target: KubePod): Promise<unknown> {
    if (target.status?.phase === 'Running') return this.#enter(migration, 'Scheduled');
    const unscheduled = target.status?.conditions?.find(
      ({ type, status }) => type === 'PodScheduled' && status === 'False',
    );
    if (target.spec.nodeName || unscheduled === undefined) return undefined;
    const left = this.#settings.unschedulableSeconds - secondsSince(unscheduled.lastTransitionTime);
    if (left > 0) return this.#enqueue(migration.metadata, left);
    return this.#fail({ migration, vmi, target }, 'Migration target pod has been unschedulable for too long');
  }

  async #prepare(migration: KubeMigration, vmi: KubeVmi, source: KubePod, target: KubePod) {
    await this.#client.edit(VIRTUAL_MACHINE_INSTANCES, vmi, ({ status }) => {
      if (status === undefined) return;
      status.migrationState = {
        migrationUid: migration.metadata.uid ?? '',
        sourceNode: source.spec.nodeName ?? '',
        sourcePod: source.metadata.name,
        targetNode: target.spec.nodeName ?? '',
        targetPod: target.metadata.name,
        mode: 'PreCopy',
        startTimestamp: now(),
      };
    });
    await this.#enter(migration, 'PreparingTarget');
  }

  /** The instance names the target's node before the source's launcher ends. */
  async #handOver(migration: KubeMigration, vmi: KubeVmi, source: KubePod, target: KubePod) {
    const left = this.#settings.copySeconds - secondsSince(migration.status?.migrationState?.startTimestamp);
    if (left > 0) return this.#enqueue(migration.metadata, left);
    if (vmi.status?.migrationState?.completed !== true) {
      await this.#client.edit(VIRTUAL_MACHINE_INSTANCES, vmi, ({ metadata, status }) => {
        const nodeName = target.spec.nodeName ?? '';
        if (status === undefined) return;
        status.nodeName = nodeName;
        metadata.labels = { ...metadata.labels, [NODE_NAME_LABEL]: nodeName };
        delete status.evacuationNodeName;
        status.migrationState = { ...status.migrationState, completed: true, endTimestamp: now() };
      });
      if (source.metadata.uid !== target.metadata.uid) await this.#exit(source);
    }
    return this.#enter(migration, 'Succeeded');
  }
}
