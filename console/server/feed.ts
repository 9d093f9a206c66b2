import type { SchedulerFacts } from '../../diagnosis/facts.ts';
import type { Reason } from '../../diagnosis/reasons.ts';
import { startRefusal } from '../../diagnosis/vm-facts.ts';
import { schedulerFacts, schedulerFault } from '../../diagnosis/waiting.ts';
import { byText } from '../../model/lists.ts';
import { SCHEDULER } from '../../model/names.ts';
import type { Status } from '../data/wire.ts';
import type { Cluster } from './cluster.ts';
import { labelOf, type ShownPod, waits } from './pods.ts';
import { nodeContent, podContent, runningEntry, type Surroundings, stateOfLaunchers } from './records.ts';
import { isSettled, vmContent } from './vms.ts';

const keyOf = (kind: 'n' | 'p' | 'r' | 'c', name = '') => `${kind}${name}`;

export const endRecord = (key: string): string => JSON.stringify([key.slice(0, 1), key.slice(1)]);

const targetOf = ({ node, nominated }: ShownPod): string | undefined => node ?? nominated;

function schedulerOf({ leader, notReady }: Status): SchedulerFacts | undefined {
  if (leader === undefined) return undefined;
  const away = leader === null ? `no replica of ${SCHEDULER} is the leader` : undefined;
  return schedulerFacts({ away }, !notReady.includes(SCHEDULER));
}

/** Reasons that depend on the time since the pause. */
const UNTIL_RESUMED: readonly Reason[] = ['AboutToResume', 'NotResumed', 'Starting', 'PinningNotReported'];

const byAge = byText<ShownPod>(({ since = '', uid }) => `${since} ${uid}`);

/** The content of the page. The cluster's watches report changes to it, and `update` writes the records. */
export class Feed {
  readonly #viewers = new Set<(keys: Iterable<string>) => void>();
  /** By uid, and by the uid in the report of their node. */
  readonly #pods = new Map<string, ShownPod>();
  readonly #reported = new Map<string, ShownPod>();
  /** The launchers of each VM: two during a migration. */
  readonly #launchers = new Map<string, readonly ShownPod[]>();
  readonly #dirtyNodes = new Set<string>();
  readonly #dirtyPods = new Set<string>();
  readonly #dirtyVms = new Set<string>();
  readonly #records = new Map<string, string>();
  readonly #changed = new Set<string>();
  #complete = false;
  #surroundings: Surroundings = {};
  readonly records: ReadonlyMap<string, string> = this.#records;

  get complete(): boolean {
    return this.#complete;
  }

  get viewers(): number {
    return this.#viewers.size;
  }

  watch(onNews: (keys: Iterable<string>) => void): () => void {
    this.#viewers.add(onNews);
    return () => void this.#viewers.delete(onNews);
  }

  nodeChanged(name: string): void {
    this.#dirtyNodes.add(name);
  }

  /** @param vm namespace/name; it may have no launcher */
  vmChanged(vm: string): void {
    this.#dirtyVms.add(vm);
  }

  /** The state of a VM depends on all of its launchers. @param vm namespace/name */
  launchersChanged(vm: string): void {
    for (const pod of this.#launchers.get(vm) ?? []) this.#markDirty(pod);
  }

  #markDirty(pod: ShownPod): void {
    this.#dirtyPods.add(pod.uid);
    // The node's record names its pods.
    const node = targetOf(pod);
    if (node !== undefined) this.#dirtyNodes.add(node);
  }

  podChanged(before: ShownPod | undefined, after: ShownPod | undefined): void {
    for (const pod of [before, after]) {
      if (pod === undefined) continue;
      this.#markDirty(pod);
      if (pod.vm === undefined) continue;
      this.vmChanged(labelOf(pod));
      this.#keepLauncher(labelOf(pod), pod.uid, pod === after ? pod : undefined);
    }
    if (before) {
      this.#pods.delete(before.uid);
      this.#reported.delete(before.kubeletUid);
    }
    if (after) {
      this.#pods.set(after.uid, after);
      this.#reported.set(after.kubeletUid, after);
    }
  }

  #keepLauncher(vm: string, uid: string, pod: ShownPod | undefined): void {
    const others = (this.#launchers.get(vm) ?? []).filter((launcher) => launcher.uid !== uid);
    const launchers = pod === undefined ? others : [...others, pod];
    if (launchers.length > 0) this.#launchers.set(vm, launchers);
    else this.#launchers.delete(vm);
    this.launchersChanged(vm);
  }

  #launchersOf(pod: ShownPod): readonly ShownPod[] {
    return pod.vm === undefined ? [pod] : (this.#launchers.get(labelOf(pod)) ?? [pod]);
  }

  /** Writes records of the changes since the last call. */
  update(cluster: Cluster, status: Status): void {
    const wasComplete = this.#complete;
    const scheduler = schedulerOf(status);
    this.#takeSurroundings({ scheduler, fault: schedulerFault(scheduler), silent: cluster.stale });
    const there = new Map([...this.#dirtyNodes].map((name): [string, ShownPod[]] => [name, []]));
    if (there.size > 0) for (const pod of this.#pods.values()) there.get(targetOf(pod) ?? '')?.push(pod);
    this.#dirtyNodes.clear();
    for (const [name, pods] of there) this.#writeNode(name, pods, cluster);
    for (const uid of this.#dirtyPods) this.#writePod(uid, cluster);
    this.#dirtyPods.clear();
    this.#writeVms(cluster);
    this.#write(keyOf('c'), ['c', status]);
    this.#complete ||= status.missing === undefined;
    if (this.#changed.size === 0 && this.#complete === wasComplete) return;
    for (const viewer of this.#viewers) viewer(this.#changed);
    this.#changed.clear();
  }

  /** @param content undefined: the thing has no record */
  #write(key: string, content: unknown): void {
    const json = content === undefined ? undefined : JSON.stringify(content);
    if (this.#records.get(key) === json) return;
    if (json === undefined) this.#records.delete(key);
    else this.#records.set(key, json);
    this.#changed.add(key);
  }

  #writeNode(name: string, pods: readonly ShownPod[], cluster: Cluster): void {
    const coming = pods.filter(({ pending }) => pending).sort(byAge);
    const isTarget = (pod: ShownPod) => this.#isTarget(pod, cluster);
    const content = nodeContent(name, cluster, (uid) => this.#reported.get(uid), coming, isTarget);
    this.#write(keyOf('n', name), content && ['n', name, content]);
    // The node's report may say that the agent refused a pod's start.
    for (const { uid } of coming) this.#dirtyPods.add(uid);
    // During a migration, both nodes matter.
    const launchers = new Set(pods.flatMap((pod) => [pod, ...this.#launchersOf(pod)]));
    for (const pod of launchers) this.#writeRunning(pod, cluster);
  }

  #writeRunning(pod: ShownPod, cluster: Cluster): void {
    const { uid, node = '', pending, running } = pod;
    const isRunning = !pending && running !== undefined;
    const entry = isRunning ? runningEntry(pod, this.#launchersOf(pod), cluster, this.#surroundings) : undefined;
    if (UNTIL_RESUMED.some((reason) => reason === entry?.[4])) this.#dirtyNodes.add(node);
    this.#write(keyOf('r', uid), entry && ['r', uid, entry]);
  }

  /** Its VM runs in another launcher, whose record tells of the migration. */
  #isTarget(pod: ShownPod, cluster: Cluster): boolean {
    const launchers = this.#launchersOf(pod);
    if (launchers.length === 1) return false;
    const state = stateOfLaunchers(launchers, cluster, this.#surroundings);
    return state.state === 'migrating' && state.migration.launcher === pod.uid;
  }

  /** Pods that wait for a node, and those that wait for the extender on it, follow its state and the agents'. */
  #takeSurroundings(surroundings: Surroundings): void {
    const textOf = ({ fault, silent = new Set() }: Surroundings) => [fault?.text, ...silent].join();
    if (textOf(surroundings) === textOf(this.#surroundings)) return;
    this.#surroundings = surroundings;
    for (const { uid, node, needs } of this.#pods.values()) {
      if (node === undefined) this.#dirtyPods.add(uid);
      else if (needs.mask !== undefined) this.#dirtyNodes.add(node);
    }
  }

  #writePod(uid: string, cluster: Cluster): void {
    const pod = this.#pods.get(uid);
    const refusal = pod && startRefusal(pod, cluster.reports.get(pod.node ?? '')?.refusals ?? []);
    const isListed = pod !== undefined && waits(pod, refusal) && !this.#isTarget(pod, cluster);
    this.#write(keyOf('p', uid), isListed ? ['p', uid, podContent(pod, refusal, this.#surroundings)] : undefined);
    if (pod?.running === undefined) this.#write(keyOf('r', uid), undefined);
  }

  /** The records of VMs without a launcher. Their names contain a slash, as no uid does. */
  #writeVms({ machines, instances }: Cluster): void {
    const dirty = [...this.#dirtyVms];
    const contents = dirty.map((vm) => [vm, vmContent(vm, machines.get(vm), instances.get(vm))] as const);
    this.#dirtyVms.clear();
    // Few VMs have no launcher, and many pods may exist.
    const isNeeded = contents.some(([, content]) => content !== undefined);
    const launched = new Set(isNeeded ? [...this.#pods.values()].map(labelOf) : []);
    for (const [vm, content] of contents) {
      const key = keyOf('p', vm);
      if (content === undefined || launched.has(vm)) this.#write(key, undefined);
      else if (isSettled(content) || this.#records.has(key)) this.#write(key, ['p', vm, content]);
      else this.#dirtyVms.add(vm);
    }
  }
}
