import * as z from 'zod';
import { listOrNone, name, uid, word } from '../../kube/bounds.ts';
import { isAlreadyExists } from '../../kube/client.ts';
import { isFinalPhase } from '../../kube/cluster-view/pods.ts';
import { instancesPath, migrationsPath } from '../../kube/cluster-view/vmis.ts';
import { pagesOf } from '../../kube/list-pages.ts';
import { recognizeLauncher, type VmiReference, vmiObject } from '../../model/launcher/recognize.ts';
import { type DpuRestart, restartText } from '../../model/lease/dpu-run.ts';
import { groupBy } from '../../model/lists.ts';
import { DPU_RECOVERY_LABEL } from '../../model/names.ts';
import type { ExtenderContext } from '../telemetry/context.ts';
import type { PodWithoutNetwork } from './dpu-restarts.ts';

type DpuRecoveryOptions = Pick<ExtenderContext, 'client' | 'events' | 'log'>;

const PAGE_OBJECTS = 500;
const MAX_CONDITIONS = 64;

const migration = z.object({
  metadata: z.object({ name, labels: z.record(z.string(), z.string()).nullish() }),
  spec: z.object({ vmiName: name.nullish() }),
  status: z.object({ phase: word.nullish() }).nullish(),
});
const instance = z.object({
  metadata: z.object({ name, uid, deletionTimestamp: word.nullish() }),
  status: z.object({
    nodeName: name.nullish(),
    conditions: listOrNone(z.object({ type: word, status: word }), MAX_CONDITIONS),
  }),
});
type Migration = z.infer<typeof migration>;

const isActive = ({ status }: Migration): boolean => !isFinalPhase(status?.phase);

/**
 * Asks KubeVirt to migrate VMs that lost their network: one at a time in each namespace, and each launcher once for each
 * restart. It remembers nothing: its migrations are in the API server, with a label and a name that says for what.
 */
export class DpuRecovery {
  readonly #options: DpuRecoveryOptions;
  /** Nodes take turns: two at once could each start a migration in one namespace. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(options: DpuRecoveryOptions) {
    this.#options = options;
  }

  /** @throws KubeError */
  readonly migrate = (node: string, restart: DpuRestart, launchers: readonly PodWithoutNetwork[]): Promise<void> => {
    const turn = this.#last.then(async () => {
      for (const [namespace, pods] of groupBy(launchers, ({ metadata }) => metadata.namespace ?? ''))
        await this.#migrateOne(namespace, node, restart, pods);
    });
    this.#last = turn.catch(() => undefined);
    return turn;
  };

  async #migrateOne(namespace: string, node: string, restart: DpuRestart, pods: readonly PodWithoutNetwork[]) {
    const migrations = await this.#list(migrationsPath(namespace), migration);
    const active = migrations.filter(isActive);
    if (active.some(({ metadata }) => metadata.labels?.[DPU_RECOVERY_LABEL] !== undefined)) return;
    const instances = await this.#list(instancesPath(namespace), instance);
    const migrating = new Set(active.map(({ spec }) => spec.vmiName));
    const requested = new Set(migrations.map(({ metadata }) => metadata.name));
    for (const pod of pods) {
      const launcher = recognizeLauncher(pod);
      const id = `plumbline-dpu-${pod.metadata.uid}-${Date.parse(restart.at) / 1000}`;
      if (launcher.kind !== 'launcher' || migrating.has(launcher.vmi.name) || requested.has(id)) continue;
      const vmi = instances.find(({ metadata }) => metadata.uid === launcher.vmi.uid);
      if (vmi === undefined || !canMigrate(vmi, node)) continue;
      if (await this.#create(namespace, id, launcher.vmi, restart)) return;
    }
  }

  /** @returns whether it was accepted. KubeVirt refuses a VM that cannot migrate now: the next one is tried. */
  async #create(namespace: string, id: string, vmi: VmiReference, restart: DpuRestart): Promise<boolean> {
    const { client, events, log } = this.#options;
    const fields = { vmi: `${namespace}/${vmi.name}`, migration: id };
    try {
      await client.create(migrationsPath(namespace), {
        apiVersion: 'kubevirt.io/v1',
        kind: 'VirtualMachineInstanceMigration',
        metadata: { name: id, namespace, labels: { [DPU_RECOVERY_LABEL]: 'true' } },
        spec: { vmiName: vmi.name },
      });
    } catch (err) {
      if (!isAlreadyExists(err)) log.warn({ ...fields, err }, 'migrating a VM failed; retrying');
      return false;
    }
    const message = `Asked KubeVirt to migrate the VM: its network is lost since ${restartText(restart)}`;
    events.record(vmiObject(namespace, vmi), { type: 'Normal', reason: 'DPURecovery', message });
    log.info(fields, 'asked KubeVirt to migrate');
    return true;
  }

  /** What cannot be read is left out. @throws KubeError */
  async #list<S extends z.ZodType>(path: string, schema: S): Promise<z.infer<S>[]> {
    const list: z.infer<S>[] = [];
    for await (const { items } of pagesOf({ client: this.#options.client, path, page: PAGE_OBJECTS }))
      list.push(...(items ?? []).flatMap((item) => schema.safeParse(item).data ?? []));
    return list;
  }
}

function canMigrate({ metadata, status }: z.infer<typeof instance>, node: string): boolean {
  if (metadata.deletionTimestamp != null || status.nodeName !== node) return false;
  return status.conditions?.some(({ type, status: value }) => type === 'LiveMigratable' && value === 'True') === true;
}
