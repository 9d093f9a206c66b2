import { isDeepStrictEqual } from 'node:util';
import type { HostReport } from '../../model/kubelet/host-report.ts';
import { sleep } from '../../runtime/time.ts';
import type { AgentReport } from './agent-report.ts';
import type { Cluster, LabNode } from './cluster.ts';
import { deviceCounts } from './devices.ts';
import type { Guest } from './guest.ts';
import { type Draw, type DrawnPod, describePod, drawPod, manifestOf, schedulable } from './pods.ts';
import { type Comparison, compareStep, forecastOf, podsAfter, sameCpus, sameMemory, type Verdict } from './predict.ts';
import type { Random } from './random.ts';
import type { RecordedNode } from './recording.ts';
import { expectedReport, type RunningPods } from './report.ts';
import { startsPods } from './rounds.ts';
import { type Snapshot, snapshotOf } from './snapshot.ts';

export type Step = Action & { readonly actual: Snapshot; readonly report?: HostReport | undefined };

type Action =
  | {
      readonly action: 'create';
      readonly name: string;
      readonly pod: DrawnPod;
      readonly verdict: Verdict;
    }
  | { readonly action: 'delete'; readonly name: string }
  | { readonly action: 'restart'; readonly verdicts: Readonly<Record<string, Verdict>> };

export interface Outcome extends Comparison {
  readonly step: Step;
  readonly before: HostReport;
}

export interface Play {
  readonly recorded: RecordedNode;
  readonly node: LabNode;
  readonly cluster: Cluster;
  readonly guest: Guest;
  readonly agent: AgentReport;
  readonly random: Random;
  readonly pods: number;
  readonly report: HostReport;
}

/** Seconds, because emulated hardware is slow. */
const VERDICT = 60;
const CLEARED = 120;
const SETTLED = 15;
const STARTED = 300;
/** Seconds until a restarted kubelet has written the status of a pod that it refuses. */
const REFUSED_SECONDS = 12;

/**
 * Creates and deletes random pods with one configuration of the kubelet, one step at a time, and compares each step
 * with its prediction from the agent's report of the step before. Finally, the node is empty again.
 */
export async function* play(game: Play): AsyncGenerator<Outcome> {
  const { recorded, node, random, cluster } = game;
  const { round } = recorded;
  const draw: Draw = {
    unit: round.cpuOptions['full-pcpus-only'] === 'true' ? 'cores' : 'threads',
    devices: round.devices ?? (startsPods(round) ? 'none' : 'some'),
    nics: round.sriov === true,
    initContainers: !startsPods(round) || round.devices === undefined,
    memory: round.reservedMemory !== undefined,
    gigabytePages: round.layout === 'gigabyte-pages',
  };
  const world = new World(game);
  const maxPods = Math.ceil(node.cpus / 2);
  const pods = startsPods(round) ? Math.ceil(game.pods / 3) : game.pods;
  for (let created = 0; created < pods; ) {
    const running = [...world.pods.keys()];
    if (running.length === maxPods || (running.length > 0 && random.chance(0.35))) {
      yield await world.remove(random.oneOf(running));
      continue;
    }
    if (round.restarts && running.length > 0 && random.chance(0.5)) {
      const outcome = await world.restart();
      for (const name of running) if (!world.pods.has(name)) await cluster.remove(name, CLEARED);
      yield outcome;
    }
    const pod = drawPod(random, draw);
    const isPredicted = world.predicts(pod);
    if (isPredicted && !schedulable(pod, world.pods.values(), node.allocatable)) continue;
    created++;
    yield await world.create(`${round.name}-${created}`, pod);
  }
  for (const name of [...world.pods.keys()].reverse()) yield await world.remove(name);
}

class World {
  readonly #game: Play;
  readonly #names = new Map<string, string>();
  #pods: RunningPods = new Map();
  #report: HostReport;

  constructor(game: Play) {
    this.#game = game;
    this.#report = game.report;
  }

  get pods(): RunningPods {
    return this.#pods;
  }

  predicts(pod: DrawnPod): boolean {
    const admission = forecastOf(this.#report).admit('next', pod);
    return 'unpredictable' in admission || admission.admitted;
  }

  async create(name: string, pod: DrawnPod): Promise<Outcome> {
    const { cluster, guest, node, recorded } = this.#game;
    const predicted = forecastOf(this.#report).admit(name, pod);
    const expected = 'unpredictable' in predicted ? undefined : snapshotOf(predicted.state);
    const uid = await cluster.create(manifestOf(pod, name, node.name, startsPods(recorded.round)));
    const verdict = await cluster.verdict(name, VERDICT);
    if (verdict.admitted) this.#names.set(uid, name);
    const isSettled = (actual: Snapshot) =>
      expected !== undefined && sameCpus(expected, actual) && (!verdict.admitted || sameMemory(name, expected, actual));
    const actual = await guest.settled(this.#names, isSettled, SETTLED);
    const outcome = await this.#after({ action: 'create', name, pod, verdict, actual });
    if (!verdict.admitted) await cluster.remove(name, CLEARED);
    return outcome;
  }

  async remove(name: string): Promise<Outcome> {
    const { cluster, guest } = this.#game;
    const expected = snapshotOf(forecastOf(this.#report).without(name));
    await cluster.remove(name, CLEARED);
    // The kubelet's device checkpoint lists deleted pods until it is next written.
    for (const [uid, other] of this.#names) if (other === name) this.#names.delete(uid);
    const actual = await guest.settled(this.#names, (snapshot) => sameCpus(expected, snapshot), SETTLED);
    return this.#after({ action: 'delete', name, actual });
  }

  /** Restarts the kubelet, and the agent half of the time. */
  async restart(): Promise<Outcome> {
    const { cluster, guest, agent, random, recorded } = this.#game;
    const names = [...this.#pods.keys()];
    // Some versions do not know the requests of a container that has not started yet.
    for (const name of names) await cluster.running(name, STARTED);
    const expected = snapshotOf(forecastOf(this.#report).restart(this.#pods).state);
    await guest.restart();
    if (random.chance(0.5)) await agent.restart();
    await cluster.readyNode(VERDICT, deviceCounts(recorded.round));
    const actual = await guest.settled(this.#names, (snapshot) => sameCpus(expected, snapshot), CLEARED);
    await sleep(REFUSED_SECONDS);
    const verdicts: Record<string, Verdict> = {};
    for (const name of names) verdicts[name] = await cluster.verdict(name, VERDICT);
    return this.#after({ action: 'restart', verdicts, actual });
  }

  async #after(step: Step): Promise<Outcome> {
    const before = this.#report;
    const { differences, unpredictable } = compareStep(forecastOf(before), step, this.#pods);
    this.#pods = podsAfter(this.#pods, step);
    for (const [uid, name] of this.#names) if (!this.#pods.has(name)) this.#names.delete(uid);
    const expected = expectedReport(this.#game.recorded, step.actual, this.#pods);
    this.#report = await this.#game.agent.settled(this.#names, expected);
    const isOutdated = !isDeepStrictEqual(this.#report, expected);
    return {
      step: { ...step, report: this.#report },
      before,
      differences: isOutdated ? [...differences, `report, expected ${JSON.stringify(expected)}`] : differences,
      ...(unpredictable !== undefined && { unpredictable }),
    };
  }
}

export function lineOf({ step, differences, unpredictable }: Outcome, seconds: number): string {
  const verdict = differences.length === 0 ? 'ok  ' : 'FAIL';
  const reason = unpredictable === undefined ? '' : ` (not predicted: ${unpredictable})`;
  return `${verdict} ${seconds.toFixed(1).padStart(5)} s  ${textOf(step)}${reason}`;
}

function textOf(step: Step): string {
  switch (step.action) {
    case 'create':
      return `create ${step.name}: ${describePod(step.pod)} -> ${outcomeText(step.name, step.verdict, step.actual)}`;
    case 'delete':
      return `delete ${step.name}`;
    case 'restart': {
      const all = Object.entries(step.verdicts).map(([name, verdict]) => {
        return `${name} ${outcomeText(name, verdict, step.actual)}`;
      });
      return `restart the kubelet -> ${all.join('; ')}`;
    }
  }
}

function outcomeText(name: string, verdict: Verdict, { cpus }: Snapshot): string {
  if (!verdict.admitted) return `${verdict.reason}: ${verdict.message}`;
  const assigned = Object.entries(cpus[name] ?? {}).map(([container, list]) => `${container} ${list}`);
  return assigned.length > 0 ? `CPUs of ${assigned.join(', ')}` : 'admitted';
}

export function mismatchOf({ step, before, differences }: Outcome): string {
  const { actual, report, ...done } = step;
  const parts = { differs: differences, step: done, before, actual, report };
  const lines = Object.entries(parts).map(([key, value]) => `       ${key.padEnd(9)} ${JSON.stringify(value)}`);
  return lines.join('\n');
}
