import type { HostMemory } from '../../hardware/memory.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import { createHost, type HostDescription } from '../../model/host.ts';
import type { Admission } from '../../model/kubelet/admission.ts';
import { createKubelet, type Kubelet, type Unpredictable } from '../../model/kubelet/kubelet.ts';
import type { CellMemory } from '../../model/kubelet/memory-state.ts';
import { podRequestOf } from '../../model/kubelet/pod-request.ts';
import type { Pod } from '../../model/kubelet/pod-shape.ts';
import type { KubeletState } from '../../model/kubelet/state.ts';
import type { Behaviour } from '../../model/kubelet/versions.ts';
import { differences, sameCpus, sameVerdict, type Verdict, verdictOf } from './compare.ts';
import { TEST_POOLS } from './devices.ts';
import type { Round } from './rounds.ts';
import { cpusOf, devicesOf, memoryOf, type Snapshot, snapshotOf } from './snapshot.ts';

/** The model's kubelet, kept in step with a real one. Only the model updates its CPUs. */
export interface Follower {
  readonly state: KubeletState;
  predict(name: string, pod: Pod): Admission;
  /** Takes the step of the real kubelet; returns the differences from the prediction. */
  admit(name: string, predicted: Admission, verdict: Verdict, actual: Snapshot): string[];
  /** The expected state after the pod is deleted. */
  without(name: string): KubeletState;
  /** Takes that step; returns the differences of the real kubelet. */
  remove(name: string, actual: Snapshot): string[];
  /** The prediction for a kubelet that restarts with existing pods. */
  predictRestart(pods: ReadonlyMap<string, Pod>): Restarted;
  /** Takes that step; returns the differences of the real kubelet. */
  restart(predicted: Restarted, verdicts: Readonly<Record<string, Verdict>>, actual: Snapshot): string[];
}

/** The outcome of each pod, and the resulting state. */
export interface Restarted {
  readonly verdicts: Readonly<Record<string, Verdict>>;
  readonly state: KubeletState;
}

/** The kubelet that is followed, and its hardware. */
export interface Followed {
  readonly version: string;
  readonly host: HostDescription;
  readonly memory?: HostMemory;
  readonly behaviour?: Partial<Behaviour>;
  readonly round: Round;
}

/** @throws Error if the model cannot predict such a kubelet */
export function createFollower(followed: Followed): Follower {
  const kubelet = kubeletOf(followed);
  if ('unpredictable' in kubelet) throw new Error(`round ${followed.round.name}: ${kubelet.unpredictable}`);
  let state = kubelet.initialState(TEST_POOLS);
  /** The choice among equal devices cannot be predicted, so the follower copies it; CPUs only after a mismatch. */
  const settle = (expected: KubeletState, actual: Snapshot, found: readonly string[]) => {
    const cpus =
      found.length === 0
        ? expected
        : { ...expected, defaultSet: CpuSet.parse(actual.defaultSet), assignments: cpusOf(actual) };
    const memory = found.includes('memory') ? memoryOf(actual, expected) : expected.memory;
    state = { ...cpus, devices: devicesOf(actual), memory };
  };
  return {
    get state() {
      return state;
    },
    predict: (name, pod) => kubelet.admit(state, podRequestOf(pod, name)),
    admit(name, predicted, verdict, actual) {
      const found = differences(name, predicted, verdict, actual, TEST_POOLS);
      settle(predicted.state, actual, found);
      return found;
    },
    without: (name) => kubelet.remove(state, name),
    remove(name, actual) {
      const expected = kubelet.remove(state, name);
      const found = sameCpus(snapshotOf(expected), actual) ? [] : ['cpus'];
      settle(expected, actual, found);
      return found;
    },
    predictRestart(pods) {
      const verdicts: Record<string, Verdict> = {};
      let left = state;
      for (const [name, pod] of pods) {
        // A refused pod's resources are freed only once the kubelet knows all its pods: each is judged among all
        // others.
        const admission = kubelet.admit(state, podRequestOf(pod, name));
        verdicts[name] = verdictOf(admission);
        if (!admission.admitted) left = kubelet.remove(left, name);
      }
      return { verdicts, state: left };
    },
    restart(predicted, verdicts, actual) {
      const found = Object.entries(predicted.verdicts)
        .filter(([name, verdict]) => !sameVerdict(verdict, verdicts[name] ?? { admitted: true }))
        .map(([name]) => `verdict on ${name}`);
      if (!sameCpus(snapshotOf(predicted.state), actual)) found.push('cpus');
      settle(predicted.state, actual, found);
      return found;
    },
  };
}

/** The model's kubelet with the configuration of a round. */
export function kubeletOf({ version, host, memory, behaviour, round }: Followed): Kubelet | Unpredictable {
  return createKubelet({
    version,
    host: createHost(host),
    cpuManager: { policy: 'static', options: round.cpuOptions },
    topologyManager: { policy: round.topologyPolicy, scope: round.scope, options: round.topologyOptions },
    memoryManager: round.reservedMemory && { policy: 'Static', cells: memoryCells(memory, round.reservedMemory) },
    reserved: CpuSet.parse(round.reserved),
    distances: memory?.distances,
    behaviour,
  });
}

function memoryCells(memory: HostMemory | undefined, reserved: readonly number[]): readonly CellMemory[] | undefined {
  return memory?.cells.map((cell) => ({ ...cell, reserved: { memory: (reserved[cell.id] ?? 0) * 2 ** 20 } }));
}
