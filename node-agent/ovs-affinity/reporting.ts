import { type EventRecorder, nodeTarget } from '../../kube/events.ts';
import { BoundedMap } from '../../model/bounded-map.ts';
import type { CpuSet } from '../../model/cpu-set.ts';
import { cut } from '../../model/errors.ts';
import { Durations } from '../../runtime/problem-log.ts';
import type { AssignmentsView } from '../assignments/view.ts';
import { Listeners, type Services } from '../lifecycle/duty.ts';
import { type AffinityProblem, FOREIGN_WRITER, textsOf } from './problems.ts';
import type { CpuTarget } from './process-affinity.ts';

export interface ReportingDeps extends Pick<Services, 'log' | 'metrics'> {
  readonly events: AffinityEvents;
  /** When the kubelet last wrote an assignment, in milliseconds since 1970; undefined if unknown. */
  readonly assignedAt: () => number | undefined;
}

const round = (value: number): number => Math.round(value * 1_000_000) / 1_000_000;

/**
 * Log lines, metrics and Events about the passes. Owner: the duty. Age: problems are those of the last pass. End:
 * `reset`, when the feature is disabled or the agent stops.
 */
export class AffinityReporting extends Listeners {
  readonly #deps: ReportingDeps;
  readonly #durations = new Durations();
  #current: readonly AffinityProblem[] = [];
  #wasUnknown = false;
  #lastReserved = '';
  #lastView: Pick<AssignmentsView, 'free' | 'owned'> | undefined;

  constructor(deps: ReportingDeps) {
    super();
    this.#deps = deps;
  }

  get current(): readonly AffinityProblem[] {
    return this.#current;
  }

  /** @param since when this process learned of the reason for the pass, in monotonic milliseconds */
  moved(target: CpuTarget, threads: number, view: AssignmentsView, since: number): void {
    const { metrics, log } = this.#deps;
    const exposed = this.#sinceAssigned(view);
    if (threads === 0) return;
    const seconds = (performance.now() - since) / 1000;
    metrics.ovsMoveSeconds.observe(seconds);
    if (exposed !== undefined) metrics.ovsVacatedSeconds.observe(exposed);
    const where = 'only' in target ? { cpus: target.only } : { avoided: target.avoid };
    const sinceAssigned = exposed === undefined ? {} : { sinceAssignedSeconds: round(exposed) };
    log.info({ ...where, threads, sinceNoticedSeconds: round(seconds), ...sinceAssigned }, 'moved OVS threads');
  }

  /** Seconds since the kubelet's write, if it was an assignment: it shrinks the pool, then records the owner. */
  #sinceAssigned({ free, owned }: AssignmentsView): number | undefined {
    const last = this.#lastView;
    const hasShrunk = last?.free !== undefined && free !== undefined && !last.free.isSubsetOf(free);
    const isNew = hasShrunk || (last !== undefined && !owned.isSubsetOf(last.owned));
    this.#lastView = { free, owned };
    const written = isNew ? this.#deps.assignedAt() : undefined;
    return written === undefined ? undefined : Math.max(0, (Date.now() - written) / 1000);
  }

  problems(problems: readonly AffinityProblem[]): void {
    const { metrics, log, events } = this.#deps;
    const before = this.#current;
    this.#current = problems;
    const texts = textsOf(problems);
    if (texts.join() === textsOf(before).join()) return;
    this.notify();
    if (texts.length === 0) {
      log.info(this.#durations.end(''), 'OVS affinity complete');
      return;
    }
    this.#durations.begin('');
    for (const { cause } of problems) {
      if (!before.some((problem) => problem.cause === cause)) metrics.ovsErrors.inc({ cause });
    }
    log.warn({ reasons: texts }, 'OVS affinity incomplete');
    const contended = problems.filter(({ cause }) => cause === FOREIGN_WRITER);
    for (const { text } of contended) events.warn('OvsAffinityContended', text);
    const others = problems.filter(({ cause }) => cause !== FOREIGN_WRITER);
    if (others.length > 0) events.warn('OvsAffinityIncomplete', textsOf(others).join('; '));
  }

  /** Call it periodically: if the owners of the CPUs are unknown in two calls, it sends an Event. */
  unknown(problems: readonly string[]): void {
    const message = `Open vSwitch gets no more CPUs: ${problems.join('; ')}`;
    if (problems.length > 0 && this.#wasUnknown) this.#deps.events.warn('OvsAffinityLimited', message);
    this.#wasUnknown = problems.length > 0;
  }

  /** The kubelet's reserved CPUs, logged once for each set. */
  reserved(cpus: CpuSet | undefined): void {
    const text = cpus?.toString() ?? '';
    if (cpus === undefined || text === this.#lastReserved) return;
    this.#lastReserved = text;
    this.#deps.log.info(`OVS CPU dynamic pinning reservedSystemCPUs set: ${text}`);
  }

  reset(): void {
    this.#current = [];
    this.notify();
    this.#wasUnknown = false;
    this.#lastView = undefined;
    this.#lastReserved = '';
  }
}

/** Seconds in which a message is sent only once, whatever its numbers: a node in trouble must not overload etcd. */
const REPEAT_SECONDS = 600;

/** Maximum number of remembered Events, and characters of each. The oldest is forgotten first. */
const MAX_REMEMBERED_EVENTS = 128;
const MAX_CHARACTERS = 1024;

interface AffinityEventsDeps {
  readonly recorder: EventRecorder;
  readonly nodeName: string;
  /** Monotonic seconds. */
  readonly nowSeconds: () => number;
}

/** Events on the Node. Owner: the duty. Age and end: a message is remembered for ten minutes, and the newest 128. */
export class AffinityEvents {
  readonly #deps: AffinityEventsDeps;
  readonly #announced = new BoundedMap<string, number>(MAX_REMEMBERED_EVENTS);

  constructor(deps: AffinityEventsDeps) {
    this.#deps = deps;
  }

  note(reason: string, message: string): void {
    this.#record('Normal', reason, message);
  }

  warn(reason: string, whole: string): void {
    const now = this.#deps.nowSeconds();
    const message = cut(whole, MAX_CHARACTERS);
    const key = `${reason} ${message.replaceAll(/\d+/g, '#')}`;
    for (const [oldKey, at] of this.#announced) if (now - at >= REPEAT_SECONDS) this.#announced.delete(oldKey);
    if (this.#announced.has(key)) return;
    this.#announced.set(key, now);
    this.#record('Warning', reason, message);
  }

  #record(type: 'Normal' | 'Warning', reason: string, message: string): void {
    this.#deps.recorder.record(nodeTarget(this.#deps.nodeName), { type, reason, message });
  }
}
