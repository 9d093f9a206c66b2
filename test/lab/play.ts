import type { Admission } from '../../model/kubelet/admission.ts';
import type { Cluster, LabNode } from './cluster.ts';
import { sameCpus, sameMemory, type Verdict, verdictOf } from './compare.ts';
import { TEST_COUNTS } from './devices.ts';
import { createFollower, type Followed, type Follower } from './follower.ts';
import type { Guest } from './guest.ts';
import { type Draw, type DrawnPod, drawPod, manifestOf, schedulable } from './pods.ts';
import type { Random } from './random.ts';
import { startsPods } from './rounds.ts';
import { type Snapshot, snapshotOf } from './snapshot.ts';

/** One action on the real kubelet, and its outcome. */
export type Step =
  | {
      readonly action: 'create';
      readonly name: string;
      readonly pod: DrawnPod;
      readonly verdict: Verdict;
      readonly actual: Snapshot;
    }
  | { readonly action: 'delete'; readonly name: string; readonly actual: Snapshot }
  | {
      readonly action: 'restart';
      readonly verdicts: Readonly<Record<string, Verdict>>;
      readonly actual: Snapshot;
    };

/** A step with its prediction. */
export interface Outcome {
  readonly step: Step;
  readonly before: Snapshot;
  readonly predicted: {
    readonly verdict?: Verdict;
    readonly verdicts?: Readonly<Record<string, Verdict>>;
    readonly state: Snapshot;
  };
  /** The differences; empty: none. */
  readonly differences: readonly string[];
}

export interface Play {
  readonly followed: Followed;
  readonly node: LabNode;
  readonly cluster: Cluster;
  readonly guest: Guest;
  readonly random: Random;
  /** The number of created pods. */
  readonly pods: number;
}

/** Seconds, because emulated hardware is slow. */
const VERDICT = 60;
const CLEARED = 120;
const SETTLED = 15;
const STARTED = 300;

/**
 * Creates and deletes random pods with one configuration of the kubelet, one step at a time, and compares each step
 * with its prediction. Finally, the node is empty again.
 */
export async function* play(game: Play): AsyncGenerator<Outcome> {
  const { followed, node, random } = game;
  const { round } = followed;
  const draw: Draw = {
    unit: round.cpuOptions['full-pcpus-only'] === 'true' ? 'cores' : 'threads',
    devices: !startsPods(round),
    memory: round.reservedMemory !== undefined,
  };
  const follower = createFollower(followed);
  const held = new Map<string, DrawnPod>();
  const most = Math.ceil(node.cpus / 2);
  /** Held pods by uid. */
  const names = new Map<string, string>();
  const pods = startsPods(round) ? Math.ceil(game.pods / 3) : game.pods;
  for (let created = 0; created < pods; ) {
    if (held.size === most || (held.size > 0 && random.chance(0.35))) {
      const name = random.oneOf([...held.keys()]);
      held.delete(name);
      yield await remove(game, follower, names, name);
      continue;
    }
    if (round.restarts && held.size > 0 && random.chance(0.5)) {
      const outcome = await restart(game, follower, names, held);
      if (outcome.step.action === 'restart') {
        for (const [name, { admitted }] of Object.entries(outcome.step.verdicts)) {
          if (admitted) continue;
          held.delete(name);
          forget(names, name);
          await game.cluster.remove(name, CLEARED);
        }
      }
      yield outcome;
    }
    const pod = drawPod(random, draw);
    const name = `${round.name}-${created + 1}`;
    const predicted = follower.predict(name, pod);
    if (predicted.admitted && !schedulable(pod, held.values(), node.allocatable)) continue;
    created++;
    const outcome = await create(game, follower, names, name, pod, predicted);
    if (outcome.step.action === 'create' && outcome.step.verdict.admitted) held.set(name, pod);
    else await game.cluster.remove(name, CLEARED);
    yield outcome;
  }
  for (const name of [...held.keys()].reverse()) yield await remove(game, follower, names, name);
}

async function create(
  { followed, cluster, guest, node }: Play,
  follower: Follower,
  names: Map<string, string>,
  name: string,
  pod: DrawnPod,
  predicted: Admission,
): Promise<Outcome> {
  const before = snapshotOf(follower.state);
  const state = snapshotOf(predicted.state);
  const uid = await cluster.create(manifestOf(pod, name, node.name, startsPods(followed.round)));
  const verdict = await cluster.verdict(name, VERDICT);
  if (verdict.admitted) names.set(uid, name);
  const expected = (found: Snapshot) => sameCpus(found, state) && (!verdict.admitted || sameMemory(found, state));
  const actual = await guest.settled(names, expected, SETTLED);
  return {
    step: { action: 'create', name, pod, verdict, actual },
    before,
    predicted: { verdict: verdictOf(predicted), state },
    differences: follower.admit(name, predicted, verdict, actual),
  };
}

async function remove(
  { cluster, guest }: Play,
  follower: Follower,
  names: Map<string, string>,
  name: string,
): Promise<Outcome> {
  const before = snapshotOf(follower.state);
  const state = snapshotOf(follower.without(name));
  await cluster.remove(name, CLEARED);
  forget(names, name);
  const actual = await guest.settled(names, (found) => sameCpus(found, state), SETTLED);
  return {
    step: { action: 'delete', name, actual },
    before,
    predicted: { state },
    differences: follower.remove(name, actual),
  };
}

async function restart(
  { cluster, guest }: Play,
  follower: Follower,
  names: ReadonlyMap<string, string>,
  held: ReadonlyMap<string, DrawnPod>,
): Promise<Outcome> {
  const before = snapshotOf(follower.state);
  const predicted = follower.predictRestart(held);
  const state = snapshotOf(predicted.state);
  // Some versions do not know the requests of a container that has not started yet.
  for (const name of held.keys()) await cluster.running(name, STARTED);
  await guest.restart();
  await cluster.readyNode(VERDICT, TEST_COUNTS);
  const actual = await guest.settled(names, (found) => sameCpus(found, state), CLEARED);
  const verdicts: Record<string, Verdict> = {};
  for (const name of held.keys()) verdicts[name] = await cluster.verdict(name, VERDICT);
  return {
    step: { action: 'restart', verdicts, actual },
    before,
    predicted: { verdicts: predicted.verdicts, state },
    differences: follower.restart(predicted, verdicts, actual),
  };
}

/** The kubelet's device checkpoint lists deleted pods until it is next written. */
function forget(names: Map<string, string>, name: string): void {
  for (const [uid, other] of names) if (other === name) names.delete(uid);
}
