/**
 * The observer's view at one moment. CPUs are plain numbers and parsed here, so that no code under test judges itself.
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
  /** The kubelet's own record of owners. */
  readonly owned: readonly Ownership[];
  /** The report of the node's agent. */
  readonly reported: readonly Ownership[];
  /** CPUs that a thread of Open vSwitch may run on; undefined without Open vSwitch. */
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
  /** Whole CPUs in the limit of `compute`. */
  readonly cpus: number;
  /** Whether its VM requests whole cores. */
  readonly aligned: boolean;
  /** The physnet of its VM's network. */
  readonly physnet?: string;
  /** Plumbline's resources in the requests of `compute`. */
  readonly devices: readonly string[];
}

/** `1,3-5` as 1, 3, 4, 5. @throws Error for any other text */
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
