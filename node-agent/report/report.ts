import { isNotFound } from '../../kube/client.ts';
import type { NodeTopologyStatus } from '../../kube/node-topology.ts';
import { formatTime } from '../../model/lease/timing.ts';
import { wholeOrNone } from '../../model/quantity.ts';
import { ProblemLog } from '../../runtime/problem-log.ts';
import { Backoff, monotonicSeconds, secondsUntilTick, sleep } from '../../runtime/time.ts';
import type { NodeIdentity } from '../kube-objects/lease.ts';
import { ChangeSignal, type Services } from '../lifecycle/duty.ts';
import type { AgentMessages } from '../telemetry/log-messages.ts';
import { AgentLease } from './agent-lease.ts';
import { fitReport } from './limits.ts';
import { NodeReader } from './node-reader.ts';
import { buildStatus, healthyDevices, type ReportInputs } from './status.ts';
import { TopologyStore } from './topology-store.ts';

type Assignment = NodeTopologyStatus['assignments'][number];

/** Minimum seconds between two writes. */
const MIN_WRITE_INTERVAL_SECONDS = 0.2;
/** Seconds from a change to its write, which goes to every extender: the kubelet writes twice for each pod. */
const DEBOUNCE_SECONDS = 0.1;
/** Seconds between checks of state without notifications while a condition is not met. */
const RETRY_SECONDS = 10;
/** Seconds between reads of the object, at shared ticks: it or its definition may have been deleted. */
const READ_SECONDS = 20;
/** Seconds, plus up to half as many, between reads of the Node. The report is written as often, which shows its age. */
const RESYNC_SECONDS = 600;

export interface ReportContent extends Omit<ReportInputs, 'kubeletVersion' | 'capacity'> {}

export interface ReportDeps extends Omit<Services, 'events'> {
  readonly inputs: () => Promise<ReportContent>;
  /** Calls the listener when the content may have changed. @returns a function that ends the subscription */
  readonly subscribe: (listener: () => void) => () => void;
  /** Milliseconds since the epoch. */
  readonly wallClock?: () => number;
}

const MAX_LOGGED_OWNERS = 20;

function newOwners(owners: readonly Assignment[], others: readonly Assignment[]) {
  const keyOf = ({ podUID, container, cpus }: Assignment) => `${podUID} ${container} ${cpus}`;
  const otherKeys = new Set(others.map(keyOf));
  const changed = owners.filter((owner) => !otherKeys.has(keyOf(owner))).slice(0, MAX_LOGGED_OWNERS);
  const texts = changed.map(({ namespace, podName, podUID, container, cpus }) => {
    return { pod: podName === undefined ? podUID : `${namespace}/${podName}`, container, cpus };
  });
  return texts.length === 0 ? undefined : texts;
}

/**
 * Publishes the report, and renews the agent's Lease while the published report is current. It writes only what
 * changed, at most once in 200 ms; a change during a write is part of the next one. Owner: this agent. Age: every
 * change is written at once, and the object is read every 20 s, since it may have been deleted. End: a report that
 * cannot be brought up to date ends with the Lease, 40 s after its last renewal.
 */
export class Report {
  readonly #deps: ReportDeps;
  readonly #store: TopologyStore;
  readonly #node: NodeReader;
  readonly #lease: AgentLease;
  readonly #problems: ProblemLog<AgentMessages>;
  readonly #definition: ProblemLog<AgentMessages>;
  readonly #changes = new ChangeSignal();
  /** When the last write was sent, and when the object and the Node are read again, in monotonic seconds. */
  #wroteAt = Number.NEGATIVE_INFINITY;
  #readAt = 0;
  #resyncAt = Number.NEGATIVE_INFINITY;
  /** The time of the last write, as in the report. */
  #reported: string | undefined;
  /** Why the published report is not current; undefined if it is. */
  #stale: string | undefined = 'nothing was published yet';

  constructor(deps: ReportDeps) {
    const { client, nodeName, log } = deps;
    // Readers compare the times of a Lease with the API server's clock.
    const { wallClock = () => Date.now() + (client.clockOffset?.() ?? 0) } = deps;
    this.#deps = deps;
    this.#store = new TopologyStore(client, nodeName);
    this.#node = new NodeReader(client, nodeName);
    this.#lease = new AgentLease({ ...deps, wallClock });
    this.#problems = new ProblemLog(log);
    this.#definition = new ProblemLog(log);
  }

  async run(signal: AbortSignal): Promise<void> {
    const unsubscribe = this.#deps.subscribe(this.#changes.set);
    const backoff = new Backoff({ most: RETRY_SECONDS });
    while (!signal.aborted) {
      try {
        // Read the content after the wait, never before it.
        await sleep(Math.max(0, this.#wroteAt + MIN_WRITE_INTERVAL_SECONDS - monotonicSeconds()), signal);
        this.#changes.clear();
        await this.#reconcile(signal);
        backoff.reset();
        if (await this.#waitForChange(signal)) await sleep(DEBOUNCE_SECONDS, signal);
      } catch (err) {
        if (signal.aborted) break;
        this.#stale = `publishing it failed: ${(err as Error).message}`;
        this.#lease.withhold(this.#stale);
        this.#deps.metrics.reportWrites.inc({ outcome: 'failed' });
        this.#problems.failed(err, 'publishing the node topology failed; retrying');
        // The object may have been deleted. A node that is not registered yet has none.
        if (isNotFound(err)) this.#resyncAt = Number.NEGATIVE_INFINITY;
        await sleep(backoff.next(), signal).catch(() => undefined);
      }
    }
    unsubscribe();
  }

  /** Renews the Lease until something changes or is due. @returns whether something has changed */
  async #waitForChange(signal: AbortSignal): Promise<boolean> {
    const isKnown = this.#store.published?.conditions?.every(({ status }) => status === 'True') === true;
    const retryAt = isKnown ? Number.POSITIVE_INFINITY : monotonicSeconds() + RETRY_SECONDS;
    const dueAt = Math.min(this.#readAt, this.#node.dueAt, retryAt);
    while (!signal.aborted) {
      if (this.#stale !== undefined) this.#lease.withhold(this.#stale);
      else if (await this.#lease.renew(signal)) {
        this.#resyncAt = Number.NEGATIVE_INFINITY;
        return false;
      }
      const wakeAt = this.#stale === undefined ? Math.min(dueAt, this.#lease.dueAt) : dueAt;
      if (await this.#changes.wait(signal, Math.max(0, wakeAt - monotonicSeconds()))) return true;
      if (monotonicSeconds() >= dueAt) return false;
    }
    return false;
  }

  /** Checks everything once, and writes the status if it differs from the published one. @throws KubeError */
  async #reconcile(signal: AbortSignal): Promise<void> {
    const now = monotonicSeconds();
    const isReadDue = now >= this.#readAt;
    if (isReadDue) this.#readAt = now + secondsUntilTick(READ_SECONDS);
    if (isReadDue && now < this.#resyncAt && !(await this.#store.read(signal))) this.#resyncAt = now;
    const content = await this.#deps.inputs();
    const isResync = now >= this.#resyncAt;
    const node = await this.#node.read(content.run, isResync, signal);
    if (isResync) {
      const wasPublished = this.#store.published !== undefined;
      const isNew = await this.#store.sync(node, signal);
      if (isNew && wasPublished) this.#deps.log.warn('the NodeTopology was deleted; publishing it again');
      this.#resyncAt = now + RESYNC_SECONDS * (1 + Math.random() / 2);
    }
    await this.#publish(content, node, signal);
    this.#problems.recovered();
  }

  async #publish(content: ReportContent, node: NodeIdentity, signal: AbortSignal): Promise<void> {
    const now = formatTime(Date.now());
    const built = buildStatus({ ...content, ...node }, this.#store.published, now);
    this.#stale = reasonNotCurrent(content, built !== undefined);
    if (built === undefined) return;
    // The Node was read before the kubelet counted the devices that it has now.
    const isNodeOutdated = (content.view.devices ?? []).some(
      (devices) => healthyDevices(devices) !== wholeOrNone(node.allocatable[devices.resource] ?? ''),
    );
    if (isNodeOutdated && built.devices === undefined) this.#node.readSoon();
    const fitted = fitReport(built, this.#store.published?.conditions, now);
    this.#reported ??= this.#store.published?.summary?.reported ?? now;
    const reported = this.#reported;
    const age = Math.min(monotonicSeconds() - this.#wroteAt, (Date.parse(now) - Date.parse(reported)) / 1000);
    const changed = this.#store.changesTo({ ...fitted, summary: built.summary && { ...built.summary, reported } });
    if (age < RESYNC_SECONDS && changed.length === 0) return;
    await this.#write({ ...fitted, summary: built.summary }, changed, signal);
    this.#reported = now;
  }

  async #write(status: NodeTopologyStatus, changed: readonly string[], signal: AbortSignal): Promise<void> {
    const { metrics, log } = this.#deps;
    const before = this.#store.published?.assignments ?? [];
    this.#wroteAt = monotonicSeconds();
    await this.#store.write(status, signal);
    metrics.reportWrites.inc({ outcome: 'written' });
    const dropped = this.#store.dropped.join(', ');
    const hint = 'kubectl apply --server-side -f manifests/base/crd/nodetopologies.yaml';
    const warning = 'the NodeTopology definition is older than this agent';
    if (dropped === '') this.#definition.recovered();
    else this.#definition.failed(`it lacks ${dropped}`, warning, { dropped, hint });
    const { reserved, assignments } = status;
    const owners = { assigned: newOwners(assignments, before), released: newOwners(before, assignments) };
    log.info({ changed, reserved, ...owners, assignments: assignments.length }, 'published node topology');
  }
}

/** Why a report of this content is not what the node has; undefined if it is, as far as every source says. */
function reasonNotCurrent({ view, networks }: ReportContent, isBuilt: boolean): string | undefined {
  if (!view.isComplete) return view.holds.join('; ') || 'the kubelet has not answered since the last change';
  if (networks === undefined) return 'the networks are not read yet';
  return isBuilt ? undefined : 'the policy of the CPU manager is not known';
}
