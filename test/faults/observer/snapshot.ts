/**
 * What the observer sees at one moment. CPUs are plain numbers and parsed here, so that no code under test takes part in
 * judging itself.
 */
export interface Snapshot {
  readonly nodes: readonly NodeView[];
  readonly pods: readonly PodView[];
}

export interface NodeView {
  readonly name: string;
  /** CPUs of each physical core. */
  readonly cores: readonly (readonly number[])[];
  readonly reserved: readonly number[];
  /** CPUs near each physnet. */
  readonly physnets: Readonly<Record<string, readonly number[]>>;
  /** The kubelet's own record of who owns what. */
  readonly owned: readonly Ownership[];
  /** What the node's agent reports of it. */
  readonly reported: readonly Ownership[];
  /** CPUs that some thread of Open vSwitch may run on; undefined where there is none. */
  readonly vswitch?: readonly number[];
}

export interface Ownership {
  readonly pod: string;
  readonly container: string;
  readonly cpus: readonly number[];
}

export interface PodView {
  readonly uid: string;
  readonly name: string;
  readonly node?: string;
  readonly phase: string;
  readonly leaving: boolean;
  /** Whole CPUs that `compute` is limited to. */
  readonly cpus: number;
  /** Whether its VM asks for whole cores. */
  readonly aligned: boolean;
  /** The physnet that its VM has a network on. */
  readonly physnet?: string;
  /** Plumbline's resources that `compute` asks for. */
  readonly devices: readonly string[];
}

/** `1,3-5` as 1, 3, 4, 5. @throws Error on anything else */
export function cpusOf(list: string): number[] {
  if (list.trim() === '') return [];
  return list
    .trim()
    .split(',')
    .flatMap((part) => {
      const [first, last] = part.split('-').map(Number);
      if (first === undefined || !Number.isInteger(first)) throw new Error(`not a CPU list: ${list}`);
      const end = last ?? first;
      return Array.from({ length: end - first + 1 }, (_, i) => first + i);
    });
}
