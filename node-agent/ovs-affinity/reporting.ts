import { type EventRecorder, type EventText, nodeTarget } from '../../kube/events.ts';
import { BoundedMap } from '../../model/bounded-map.ts';
import type { CpuSet } from '../../model/cpu-set.ts';
import { cut } from '../../model/errors.ts';
import { Durations } from '../../runtime/problem-log.ts';
import type { AssignmentsView } from '../assignments/view.ts';
import { Listeners, type Services } from '../lifecycle/duty.ts';
import { type AffinityProblem, FOREIGN_WRITER } from './problems.ts';
import type { CpuTarget } from './process-affinity.ts';

export interface ReportingDeps extends Pick<Services, 'log' | 'metrics'> {
  readonly events: AffinityEvents;
  /** When the kubelet last wrote an assignment, in milliseconds since 1970; undefined if unknown. */
  readonly assignedAt: () => number | undefined;
}

const round = (value: number): number => Math.round(value * 1_000_000) / 1_000_000;

export function createReporting({ log, metrics, events, assignedAt }: ReportingDeps) {
  const listeners = new Listeners();
  const durations = new Durations();
  let current: readonly AffinityProblem[] = [];
  let unknownBefore = false;
  let lastReserved = '';
  let last: Pick<AssignmentsView, 'free' | 'owned'> | undefined;

  /** Seconds since the kubelet's write, if it was an assignment: it shrinks the pool, then records the owner. */
  const sinceAssigned = ({ free, owned }: AssignmentsView): number | undefined => {
    const taken = last?.free !== undefined && free !== undefined && !last.free.isSubsetOf(free);
    const isNew = taken || (last !== undefined && !owned.isSubsetOf(last.owned));
    last = { free, owned };
    const written = isNew ? assignedAt() : undefined;
    return written === undefined ? undefined : Math.max(0, (Date.now() - written) / 1000);
  };

  return {
    /** @param since when this process learned of the reason for the pass, in monotonic milliseconds */
    moved(target: CpuTarget, threads: number, view: AssignmentsView, since: number) {
      const exposed = sinceAssigned(view);
      if (threads === 0) return;
      const millis = performance.now() - since;
      metrics.ovsMoveSeconds.observe(millis / 1000);
      if (exposed !== undefined) metrics.ovsVacatedSeconds.observe(exposed);
      const where = 'only' in target ? { cpus: target.only } : { avoided: target.avoid };
      log.info(
        {
          ...where,
          threads,
          sinceNoticedSeconds: round(millis / 1000),
          ...(exposed !== undefined && { sinceAssignedSeconds: round(exposed) }),
        },
        'moved OVS threads',
      );
    },
    problems(problems: readonly AffinityProblem[]) {
      const before = current;
      current = problems;
      const texts = problems.map(({ text }) => text);
      if (texts.join() === before.map(({ text }) => text).join()) return;
      listeners.notify();
      if (texts.length === 0) return log.info(durations.end(''), 'OVS affinity complete');
      durations.begin('');
      for (const { cause } of problems) {
        if (!before.some((one) => one.cause === cause)) metrics.ovsErrors.inc({ cause });
      }
      log.warn({ reasons: texts }, 'OVS affinity incomplete');
      const contended = problems.filter(({ cause }) => cause === FOREIGN_WRITER);
      for (const { text } of contended) events.contended(text);
      const others = problems.filter(({ cause }) => cause !== FOREIGN_WRITER);
      if (others.length > 0) events.incomplete(others.map(({ text }) => text));
    },
    /** Call it periodically: if the owners of the CPUs are unknown in two calls, it sends an Event. */
    unknown(problems: readonly string[]) {
      if (problems.length > 0 && unknownBefore) events.restricted(problems);
      unknownBefore = problems.length > 0;
    },
    /** The kubelet's reserved CPUs, logged once for each set. */
    reserved(cpus: CpuSet | undefined) {
      const text = cpus?.toString() ?? '';
      if (cpus === undefined || text === lastReserved) return;
      lastReserved = text;
      log.info(`OVS CPU dynamic pinning reservedSystemCPUs set: ${text}`);
    },
    get current(): readonly AffinityProblem[] {
      return current;
    },
    subscribe: listeners.subscribe,
    reset() {
      current = [];
      listeners.notify();
      unknownBefore = false;
      last = undefined;
      lastReserved = '';
    },
  };
}

/** Seconds in which a message is sent only once, whatever its numbers: a node in trouble must not overload etcd. */
const REPEAT_SECONDS = 600;

/** Maximum number of remembered Events, and characters of each. The oldest is forgotten first. */
const MAX_REMEMBERED_EVENTS = 128;
const MAX_CHARACTERS = 1024;

export type AffinityEvents = ReturnType<typeof createAffinityEvents>;

export interface AffinityEventsDeps {
  readonly recorder: EventRecorder;
  readonly nodeName: string;
  /** Monotonic seconds. */
  readonly now: () => number;
}

export function createAffinityEvents({ recorder, nodeName, now }: AffinityEventsDeps) {
  const announced = new BoundedMap<string, number>(MAX_REMEMBERED_EVENTS);
  const node = nodeTarget(nodeName);

  const warn = (reason: string, whole: string) => {
    const message = cut(whole, MAX_CHARACTERS);
    const key = `${reason} ${message.replaceAll(/\d+/g, '#')}`;
    for (const [oldKey, at] of announced) if (now() - at >= REPEAT_SECONDS) announced.delete(oldKey);
    if (announced.has(key)) return;
    announced.set(key, now());
    recorder.record(node, { type: 'Warning', reason, message });
  };
  const note = (event: Omit<EventText, 'type'>) => recorder.record(node, { type: 'Normal', ...event });

  return {
    enabled: (file: string) =>
      note({ reason: 'OvsAffinityEnabled', message: `Open vSwitch runs on the CPUs without an owner (${file})` }),
    disabled: () =>
      note({ reason: 'OvsAffinityDisabled', message: 'the threads of Open vSwitch have their original CPUs again' }),
    incomplete: (problems: readonly string[]) => warn('OvsAffinityIncomplete', problems.join('; ')),
    contended: (problem: string) => warn('OvsAffinityContended', problem),
    restricted: (problems: readonly string[]) =>
      warn('OvsAffinityLimited', `Open vSwitch gets no more CPUs: ${problems.join('; ')}`),
    notVacated: (problem: string) => warn('OvsNotVacated', problem),
  };
}
