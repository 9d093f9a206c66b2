import { EventEmitter } from 'node:events';
import type * as z from 'zod';
import { word } from '../../kube/bounds.ts';
import { PODS_PATH } from '../../kube/cluster-view/pods.ts';
import { pagesOf } from '../../kube/list-pages.ts';
import { connectionWrites, observedMeta, pod as podSchema, podStatus } from '../../kube/resources.ts';
import { recognizeLauncher, vmiObject } from '../../model/launcher/recognize.ts';
import { type DpuRestart, isNetworkLost, networkMadeAt, restartText } from '../../model/lease/dpu-run.ts';
import { logFailure } from '../../runtime/log.ts';
import { ProblemLog } from '../../runtime/problem-log.ts';
import { WorkQueue } from '../../runtime/work-queue.ts';
import { type DpuScope, hasNetworkDevice } from '../cluster/pod-needs.ts';
import type { ExtenderContext } from '../telemetry/context.ts';
import type { ExtenderMessages } from '../telemetry/log-messages.ts';

interface DpuRestartsOptions extends Pick<ExtenderContext, 'client' | 'events' | 'active' | 'log'> {
  readonly scope: DpuScope;
  /** Called at each check with the launchers on the node that lost their network; undefined: VMs are only reported. */
  readonly migrate: ((node: string, restart: DpuRestart, launchers: PodWithoutNetwork[]) => Promise<void>) | undefined;
}

const podWithConnections = podSchema.extend({
  metadata: observedMeta.extend({ creationTimestamp: word.optional(), managedFields: connectionWrites }),
  status: podStatus.pick({ phase: true, conditions: true }).nullish(),
});
export type PodWithoutNetwork = z.infer<typeof podWithConnections>;

/** Between two checks of a node whose pods have lost their network, and after a failure. */
const CHECK_MILLISECONDS = 10_000;
const PAGE_PODS = 500;

interface Loss {
  readonly restart: DpuRestart;
  /** `over`: no pod lost its network, or none is left; no pod is added later. */
  state: 'unknown' | 'lost' | 'over';
  /** The uids of the pods with an Event. */
  readonly announced: Set<string>;
}

/**
 * The pods that lost their network when their node's DPU, or its Open vSwitch, restarted: an Event for each, and the node's
 * condition until the last one was made again or repaired.
 *
 * Remembered by node. Owner: the record in the DPU's Lease. Age: pods are listed every ten seconds while some are lost.
 * End: the record has no restart, another one, or the Lease is gone. Another replica finds all of it in the Lease and the pods.
 */
export class DpuRestarts extends EventEmitter<{
  /** The node's condition may differ from `conditionOf`. */
  readonly changed: [node: string];
}> {
  readonly #options: DpuRestartsOptions;
  readonly #problems: ProblemLog<ExtenderMessages>;
  readonly #losses = new Map<string, Loss>();
  /** The checks, by node. */
  readonly #queue: WorkQueue<string>;

  constructor(options: DpuRestartsOptions) {
    super();
    this.#options = options;
    this.#problems = new ProblemLog(options.log);
    this.#queue = new WorkQueue({
      work: async (node) => {
        await this.#check(node);
        return 'done';
      },
      onFault: logFailure(options.log),
    });
  }

  /** @param restart undefined: none was recorded, or the check is off */
  leaseChanged(node: string, restart: DpuRestart | undefined): void {
    const before = this.#losses.get(node);
    if (before?.restart.at === restart?.at && before?.restart.kind === restart?.kind) return;
    this.#losses.delete(node);
    if (restart === undefined) this.emit('changed', node);
    else this.#begin(node, restart);
  }

  /** Call it when this replica has become the active one. */
  checkAll(): void {
    for (const [node, { restart }] of this.#losses) this.#begin(node, restart);
  }

  /** What the node's condition should say; null: it should have none; undefined: not known yet. */
  conditionOf(node: string): Readonly<Record<'at' | 'reason' | 'message', string>> | null | undefined {
    const { restart, state = 'over' } = this.#losses.get(node) ?? {};
    if (restart === undefined || state === 'over') return null;
    const reason = restart.kind === 'reboot' ? 'DPURebooted' : 'OpenVswitchRestarted';
    return state === 'unknown' ? undefined : { at: restart.at, reason, message: restartText(restart) };
  }

  stop(): void {
    void this.#queue.stop();
    this.#losses.clear();
  }

  #begin(node: string, restart: DpuRestart): void {
    this.#losses.set(node, { restart, state: 'unknown', announced: new Set() });
    this.#queue.add(node, node);
  }

  async #check(node: string): Promise<void> {
    const loss = this.#losses.get(node);
    if (loss === undefined || loss.state === 'over') return;
    try {
      if (this.#options.active()) await this.#reconcile(node, loss);
      this.#problems.recovered();
    } catch (err) {
      this.#problems.failed(err, 'checking networks failed; retrying', { node });
    }
    this.#queue.addAfter(node, node, CHECK_MILLISECONDS);
  }

  /** @throws KubeError */
  async #reconcile(node: string, loss: Loss): Promise<void> {
    const pods = await this.#podsWithoutNetwork(node, loss.restart);
    if (this.#losses.get(node) !== loss) return;
    this.#announce(node, loss, pods);
    loss.state = pods.length === 0 ? 'over' : 'lost';
    this.emit('changed', node);
    await this.#options.migrate?.(node, loss.restart, pods.filter(isRunningLauncher));
  }

  async #podsWithoutNetwork(node: string, restart: DpuRestart): Promise<PodWithoutNetwork[]> {
    const { client, scope } = this.#options;
    const query = { fieldSelector: `spec.nodeName=${node}` };
    const pods: PodWithoutNetwork[] = [];
    for await (const { items } of pagesOf({ client, path: PODS_PATH, query, page: PAGE_PODS })) {
      const read = (items ?? []).flatMap((item) => podWithConnections.safeParse(item).data ?? []);
      const lost = read.filter((pod) => isNetworkLost(networkMadeAt(pod), restart));
      pods.push(...lost.filter((pod) => scope === 'all' || hasNetworkDevice(pod)));
    }
    return pods;
  }

  #announce(node: string, { restart, announced }: Loss, pods: readonly PodWithoutNetwork[]): void {
    const { events, log } = this.#options;
    const event = 'NetworkLost';
    const message = `The network is lost since ${restartText(restart)}: migrate or restart it`;
    for (const pod of pods) {
      const { uid = '', namespace = '', name = '' } = pod.metadata;
      if (announced.has(uid)) continue;
      const launcher = recognizeLauncher(pod);
      const ownObject = { apiVersion: 'v1', kind: 'Pod', namespace, name, uid };
      const object = launcher.kind === 'launcher' ? vmiObject(namespace, launcher.vmi) : ownObject;
      events.record(object, { type: 'Warning', reason: event, message });
    }
    if (announced.size === 0 && pods.length > 0)
      log.warn({ node, ...restart, pods: pods.length, event, message }, 'pods lost their network');
    for (const { metadata } of pods) announced.add(metadata.uid ?? '');
  }
}

function isRunningLauncher(pod: PodWithoutNetwork): boolean {
  return pod.status?.phase === 'Running' && recognizeLauncher(pod).kind === 'launcher';
}
