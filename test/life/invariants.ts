import type { NodeTopologyStatus } from '../../kube/node-topology.ts';
import { CpuSet, unionOf } from '../../model/cpu-set.ts';
import { processorWaitMs } from '../support/processor-time.ts';
import { expectedHost } from './world/machine.ts';
import { LEASE, type LifeNode, TOPOLOGY } from './world/node.ts';
import { MACHINE } from './world/open-vswitch.ts';

export interface Violation {
  readonly invariant: string;
  readonly message: string;
}

/** Milliseconds that a machine shared with other tests may take longer than promised, apart from measured stalls. */
const SLACK = 5000;
/**
 * Milliseconds after which the agent works again: after its start, and after the end of a fault of one of its sources. It
 * tries the kubelet and Open vSwitch again after at most 10 s, and the API server after at most 30 s.
 */
const RECOVERY = { agent: 15_000, api: 30_000, kubelet: 15_000, checkpoint: 10_000, database: 15_000 } as const;
type Source = keyof typeof RECOVERY;

/** A fact of the report. Truth undefined: it cannot be known now. */
interface Fact {
  readonly name: string;
  /**
   * Milliseconds until a change is in the report: 15 s for what the kubelet reads when it starts, 30 s for the host's
   * interfaces (docs/reference/node-agent.md); "when something changes" for all else, with the kubelet's answer.
   */
  readonly promised: number;
  readonly needs: readonly Source[];
  readonly truth: (node: LifeNode) => string | undefined;
  readonly reported: (status: NodeTopologyStatus) => string;
  /** The condition that is not True while the report omits the fact (docs/reference/events.md), which is no wrong report. */
  readonly condition?: string;
}

const OF_KUBELET: readonly Source[] = ['agent', 'api', 'kubelet', 'checkpoint'];
const lines = (list: readonly string[]) => [...list].sort().join(' ');
const physnetOf = ({ physnets = [] }: NodeTopologyStatus, wanted: string) =>
  physnets.find(({ name }) => name === wanted)?.cells ?? 'none';
/** While a kubelet starts, and until the kernel's facts are its own, the report cannot have them. */
const whileReady = (node: LifeNode, text: string) =>
  node.kubelet.state === 'starting' || node.isNodeStale ? undefined : text;
const isSeen = ({ kubelet, machine }: LifeNode) => kubelet.run.machine.online.equals(machine.facts.online);
const arePagesSeen = ({ kubelet, machine }: LifeNode) =>
  kubelet.run.machine.pages.join() === machine.facts.pages.join();

const FACTS: readonly Fact[] = [
  {
    name: 'owners',
    promised: 3000,
    needs: OF_KUBELET,
    truth: ({ kubelet }) => lines(kubelet.owners.map(({ container, cpus }) => `${container}=${cpus}`)),
    reported: ({ assignments }) => lines(assignments.map(({ container, cpus }) => `${container}=${cpus}`)),
  },
  {
    name: 'uids',
    promised: 3000,
    needs: OF_KUBELET,
    // PodResources has none.
    truth: ({ kubelet }) =>
      kubelet.checkpointFault === undefined ? lines(kubelet.owners.map(({ uid }) => uid)) : undefined,
    reported: ({ assignments }) => lines(assignments.map(({ podUID }) => podUID)),
  },
  {
    name: 'claims',
    promised: 3000,
    needs: OF_KUBELET,
    truth: ({ kubelet }) => lines([...kubelet.claims].map(([uid, { cpus }]) => `${uid}=${cpus}`)),
    reported: ({ claims = [] }) => lines(claims.map(({ uid, cpus }) => `${uid}=${cpus}`)),
  },
  {
    name: 'version',
    condition: 'KubeletRunKnown',
    promised: 15_000,
    needs: OF_KUBELET,
    truth: (node) => (node.isHeartbeatOfOtherClock ? undefined : whileReady(node, node.kubelet.run.version)),
    reported: ({ kubeletVersion = 'none' }) => kubeletVersion,
  },
  {
    name: 'cells',
    promised: 15_000,
    needs: OF_KUBELET,
    truth(node) {
      const { cells, cores, offline } = expectedHost(node.kubelet.run.machine);
      const text = JSON.stringify([cells.map(({ id, cpus }) => `${id}:${cpus}`), cores, offline]);
      return isSeen(node) ? whileReady(node, text) : undefined;
    },
    reported: ({ cells, cores, offline = '' }) =>
      JSON.stringify([cells.map(({ id, cpus }) => `${id}:${cpus}`), [...cores].sort(), offline]),
  },
  {
    name: 'settings',
    condition: 'KubeletConfigKnown',
    promised: 15_000,
    needs: OF_KUBELET,
    truth(node) {
      const { reserved, options, reservedPages } = node.kubelet.run.settings;
      // The reserved CPUs are the online ones that are not allocatable.
      return isSeen(node) ? whileReady(node, JSON.stringify([reserved, options, reservedPages])) : undefined;
    },
    reported: ({ reserved, cpuManager, memoryManager }) =>
      JSON.stringify([reserved, cpuManager.options ?? {}, memoryManager?.cells?.[0]?.reserved?.['hugepages-2Mi'] ?? 0]),
  },
  {
    name: 'pages',
    condition: 'MemoryStateKnown',
    promised: 15_000,
    needs: OF_KUBELET,
    truth(node) {
      const { machine, settings } = node.kubelet.run;
      const { pages } = expectedHost(machine);
      const text = pages.map((bytes, id) => `${bytes}/${bytes - (id === 0 ? settings.reservedPages : 0)}`).join();
      return arePagesSeen(node) && isSeen(node) ? whileReady(node, text) : undefined;
    },
    reported: ({ memoryManager }) =>
      (memoryManager?.cells ?? [])
        .map(
          ({ hugePages, state }) => `${hugePages?.['hugepages-2Mi'] ?? 0}/${state?.free['hugepages-2Mi'] ?? 'unknown'}`,
        )
        .join(),
  },
  {
    name: 'physnet1',
    promised: 30_000,
    needs: [...OF_KUBELET, 'database'],
    truth: ({ machine, switch: { isDatabaseUp } }) => (isDatabaseUp ? machine.nicCells.toString() : undefined),
    reported: (status) => physnetOf(status, 'physnet1'),
  },
  {
    name: 'map',
    promised: 5000,
    needs: OF_KUBELET,
    // What a faulty map changed nothing of may be forgotten where the state could not be saved.
    truth: ({ map, mapFault, mapSavedSince, state }) =>
      mapFault !== undefined && state.mayHaveRefused(mapSavedSince) ? undefined : `${map.physnet2} ${map.tunnel}`,
    reported: (status) => `${physnetOf(status, 'physnet2')} ${status.tunnel?.cells ?? 'none'}`,
  },
];

/**
 * What a report must say while it cannot be right: since when, or undefined. The kernel is checked every 15 s, and a kubelet
 * whose files do not change is queried every 30 s, with a deadline of 5 s. An agent that starts without a usable checkpoint
 * publishes nothing, and does not renew its Lease, until PodResources counts alone: after 30 s.
 */
const STATEMENTS: readonly (readonly [
  name: string,
  promised: number,
  since: (node: LifeNode) => number | undefined,
  type?: string,
])[] = [
  ['CPUs that the kubelet has not seen', 15_000, (node) => (isSeen(node) ? undefined : node.machine.changedAt)],
  [
    'an unusable checkpoint',
    40_000,
    ({ kubelet }) => (kubelet.checkpointFault === undefined ? undefined : kubelet.checkpointSince),
    'AssignmentsKnown',
  ],
  [
    'a silent PodResources',
    40_000,
    ({ kubelet }) => (['silent', 'failing'].includes(kubelet.answers) ? kubelet.answersSince : undefined),
    'AssignmentsKnown',
  ],
  [
    'a broken network map',
    5000,
    ({ mapFault, mapSince }) => (mapFault === undefined ? undefined : mapSince),
    'NetworkMapValid',
  ],
];

/**
 * Milliseconds that a new owner may be missing in a write. If the file that would name it is broken, and the report says
 * so: as long as the Lease may still be valid, which is not renewed then.
 */
const NEW_OWNER = 3000;
const NEW_OWNER_UNKNOWN = 40_000;
/** Milliseconds after which no renewal follows a change of the kubelet's file that it has not answered for. */
const NO_ANSWER = 1000;
/** Milliseconds in which threads leave a CPU with a new owner that is in a file: at once (docs/reference/ovs.md). */
const THREADS_LEAVE = 1000;

export function reportedFree({ cells, reserved, assignments, claims = [] }: NodeTopologyStatus): CpuSet {
  const used = [...assignments, ...claims].map(({ cpus }) => CpuSet.parse(cpus));
  return unionOf(cells.map(({ cpus }) => CpuSet.parse(cpus))).minus(unionOf([...used, CpuSet.parse(reserved)]));
}

const isTrue = (status: NodeTopologyStatus | undefined, wanted: string) =>
  status?.conditions?.find(({ type }) => type === wanted)?.status === 'True';

/** Milliseconds until a deleted NodeTopology is there again: the agent reads it every 20 s. */
const RECREATED = 25_000;
/** Milliseconds between checks, and how much of a stall counts at the next check. */
export const CHECK_MILLISECONDS = 400;
const STALL_FADES = 0.98;

/** The map names networks that nothing else finds, so NetworkMapAgrees says something true about every node here. */
const isAsExpected = ({ type, status }: { readonly type: string; readonly status: string }) =>
  status === 'True' || type === 'NetworkMapAgrees';

interface WrongFact {
  readonly name: string;
  readonly message: string;
  readonly isSaid: boolean;
}

export class Invariants {
  readonly violations: Violation[] = [];
  readonly #node: LifeNode;
  readonly #truths = new Map<string, { readonly text: string | undefined; readonly since: number }>();
  #unanswered = 0;
  /** Milliseconds by which this process was late; the agents on the same machine are as late. */
  #stall = 0;
  /** Milliseconds that the agents waited for a processor: the time of other tests. */
  #waited = 0;
  readonly #waits = new Map<number, number>();
  #checkedAt = Number.POSITIVE_INFINITY;

  constructor(node: LifeNode) {
    this.#node = node;
    node.api.onWrite = (path) => {
      this.sample();
      if (path === TOPOLOGY) this.#checkReport();
      if (path === LEASE) this.#checkRenewal();
    };
  }

  get #slack(): number {
    return SLACK + 3 * this.#stall + this.#waited;
  }

  get status(): NodeTopologyStatus | undefined {
    return this.#node.api.objects.get(TOPOLOGY)?.['status'] as NodeTopologyStatus | undefined;
  }

  #fail(invariant: string, message: string): void {
    if (this.violations.some((violation) => violation.invariant === invariant)) return;
    this.violations.push({ invariant, message });
  }

  sample(): void {
    for (const { name, truth } of FACTS) {
      const text = truth(this.#node);
      if (!this.#truths.has(name) || this.#truths.get(name)?.text !== text)
        this.#truths.set(name, { text, since: performance.now() });
    }
  }

  /** Since when a source is well, with the time that the agent may need; infinite if it is not. */
  #wellSince(source: Source): number {
    const { agent, kubelet, switch: ovs, apiState, apiSince } = this.#node;
    const since: Record<Source, number> = {
      agent: agent?.isWorking ? agent.since : Number.POSITIVE_INFINITY,
      api: apiState === 'answers' ? apiSince : Number.POSITIVE_INFINITY,
      kubelet:
        kubelet.state === 'ready' && kubelet.answers === 'ready'
          ? Math.max(kubelet.stateSince, kubelet.answersSince)
          : Number.POSITIVE_INFINITY,
      checkpoint: kubelet.checkpointFault === undefined ? kubelet.checkpointSince : Number.POSITIVE_INFINITY,
      database: ovs.isDatabaseUp ? ovs.databaseSince : Number.POSITIVE_INFINITY,
    };
    return since[source] === 0 ? 0 : since[source] + RECOVERY[source];
  }

  /** Facts that differ from the truth. @param at monotonic milliseconds at which a fact must be right, given its change */
  #wrongFacts(at: (fact: Fact, changedAt: number) => number): WrongFact[] {
    const status = this.status;
    const now = performance.now();
    const wrong: WrongFact[] = [];
    for (const fact of FACTS) {
      const { text, since = 0 } = this.#truths.get(fact.name) ?? {};
      if (text === undefined || now <= at(fact, since)) continue;
      const age = ((now - since) / 1000).toFixed(1);
      if (status?.cells === undefined && now < this.#node.deletedAt + RECREATED + this.#slack) continue;
      if (status?.cells === undefined)
        return [{ name: 'everything', isSaid: false, message: `no report for ${age} s` }];
      const reported = fact.reported(status);
      if (reported === text) continue;
      const isSaid = fact.condition !== undefined && !isTrue(status, fact.condition);
      const said = (status.conditions ?? []).filter((condition) => !isAsExpected(condition));
      const conditions = said.map(({ type, message }) => `; ${type}: ${message}`).join('');
      const message = `reported ${reported || 'none'}; true for ${age} s: ${text || 'none'}${conditions}`;
      wrong.push({ name: fact.name, isSaid, message });
    }
    return wrong;
  }

  /** (a) at each write of the report */
  #checkReport(): void {
    const status = this.status;
    if (status?.cells === undefined) return;
    const free = reportedFree(status);
    const { kubelet } = this.#node;
    const isSaid = kubelet.checkpointFault !== undefined && !isTrue(status, 'AssignmentsKnown');
    const oldest = performance.now() - this.#slack - (isSaid ? NEW_OWNER_UNKNOWN : NEW_OWNER);
    for (const { cpus, since } of [...kubelet.owners, ...kubelet.claims.values()]) {
      if (since > oldest || !cpus.intersects(free)) continue;
      const age = ((performance.now() - since) / 1000).toFixed(1);
      this.#fail(
        'a owned CPU reported free',
        `${cpus.intersect(free)} has been owned for ${age} s, and is free in a new report`,
      );
    }
  }

  /** (c) at each renewal of the Lease: what the kubelet's truth was for longer than promised must be in the report. */
  #checkRenewal(): void {
    const status = this.status;
    if (status?.cells === undefined) return;
    const { kubelet } = this.#node;
    for (const { name, isSaid, message } of this.#wrongFacts(
      ({ promised }, changed) => changed + promised + this.#slack,
    )) {
      if (!isSaid) this.#fail(`c Lease renewed with a wrong report: ${name}`, message);
    }
    const { answers, answersSince, changedAt } = kubelet;
    const isUnanswered = ['silent', 'failing'].includes(answers) && answersSince < changedAt;
    const age = performance.now() - changedAt;
    if (isUnanswered && age > NO_ANSWER + this.#slack)
      this.#fail(
        'c Lease renewed without an answer of the kubelet',
        `its file changed ${(age / 1000).toFixed(1)} s ago, and PodResources is ${answers}`,
      );
  }

  #newWaits(): number {
    let sum = 0;
    for (const agent of [this.#node.agent, this.#node.second]) {
      if (agent === undefined || agent.ended !== undefined) continue;
      const now = processorWaitMs(agent.pid);
      sum += now - (this.#waits.get(agent.pid) ?? 0);
      this.#waits.set(agent.pid, now);
    }
    return sum;
  }

  /** Everything that must hold at any time. */
  check(): void {
    this.#stall = Math.max(this.#stall * STALL_FADES, performance.now() - this.#checkedAt - CHECK_MILLISECONDS);
    this.#checkedAt = performance.now();
    this.#waited = this.#waited * STALL_FADES + this.#newWaits();
    this.sample();
    for (const agent of [this.#node.agent, this.#node.second]) {
      if (agent?.ended !== undefined) this.#fail('e the agent ended by itself', agent.ended);
    }
    this.#node.replaceEndedAgent();
    const bounded = ({ promised, needs }: Fact, changedAt: number) =>
      Math.max(changedAt + promised, ...needs.map((source) => this.#wellSince(source))) + this.#slack;
    for (const { name, message } of this.#wrongFacts(bounded)) this.#fail(`b report differs: ${name}`, message);
    this.#checkStatements();
    this.#checkThreads();
  }

  #checkStatements(): void {
    const now = performance.now();
    const reachable = Math.max(this.#wellSince('agent'), this.#wellSince('api'));
    for (const [name, promised, since, type] of STATEMENTS) {
      const began = since(this.#node);
      if (began === undefined || now <= Math.max(began + promised, reachable) + this.#slack) continue;
      const conditions = this.status?.conditions ?? [];
      const isSaid = conditions.some(
        (condition) => !isAsExpected(condition) && condition.type === (type ?? condition.type),
      );
      if (!isSaid) this.#fail(`b not said: ${name}`, `for ${((now - began) / 1000).toFixed(1)} s`);
    }
  }

  /** (d) threads of Open vSwitch */
  #checkThreads(): void {
    const { kubelet, switch: ovs, agent, masksLost, isRestarting } = this.#node;
    if (agent?.isWorking !== true || isRestarting) return;
    const now = performance.now();
    const ready = Math.max(ovs.since, ovs.startedAt, agent.since + RECOVERY.agent);
    if (!ovs.isOn) {
      const wrong = masksLost === undefined && now > ready + this.#slack + 5000 ? ovs.notRestored() : [];
      if (wrong.length > 0) this.#fail('d masks not restored', wrong.join('; '));
      return;
    }
    const seen = Math.max(ready, this.#wellSince('checkpoint'));
    for (const { cpus, since } of [...kubelet.owners, ...kubelet.claims.values()]) {
      if (!cpus.intersects(MACHINE) || now <= Math.max(seen, since + THREADS_LEAVE) + this.#slack) continue;
      for (const [tid, mask] of ovs.masks()) {
        if (mask.intersects(cpus))
          this.#fail(
            'd thread on an owned CPU',
            `thread ${tid} may run on ${mask}; ${cpus} owned for ${((now - since) / 1000).toFixed(1)} s`,
          );
      }
    }
  }

  /** (e) the process answers its probes */
  async probe(): Promise<void> {
    const agent = this.#node.agent;
    if (agent?.isWorking !== true || agent.ended !== undefined) return;
    const answer = await agent.readiness();
    this.#unanswered = answer === undefined && agent === this.#node.agent ? this.#unanswered + 1 : 0;
    if (this.#unanswered >= 4)
      this.#fail('e the agent does not answer', 'four requests of /readyz in a row had no answer in 5 s');
  }

  async notRecovered(): Promise<string[]> {
    this.sample();
    const wrong = this.#wrongFacts(() => 0).map(({ name, message }) => `b report differs: ${name}: ${message}`);
    const conditions = (this.status?.conditions ?? []).filter((condition) => !isAsExpected(condition));
    const failed = conditions.map(({ type, message }) => `e not recovered: ${type}: ${message}`);
    const answer = await this.#node.agent?.readiness();
    return [...wrong, ...failed, ...(answer === 'ok' ? [] : [`e not recovered: /readyz: ${answer}`])];
  }

  failRecovery(wrong: readonly string[]): void {
    for (const text of wrong) {
      const [first = '', second = '', ...rest] = text.split(': ');
      this.#fail(`${first}: ${second}`, rest.join(': ') || 'after every fault had ended');
    }
  }
}
