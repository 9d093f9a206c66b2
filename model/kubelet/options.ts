const DEFAULT_MAX_CELLS = 8;

const CPU_OPTION = {
  'full-pcpus-only': 'fullPcpusOnly',
  'distribute-cpus-across-numa': 'distributeAcrossNuma',
  'align-by-socket': 'alignBySocket',
  'distribute-cpus-across-cores': 'distributeAcrossCores',
  'strict-cpu-reservation': 'strictReservation',
  'prefer-align-cpus-by-uncorecache': 'preferAlignByUncore',
} as const;

export type CpuOptions = Readonly<Record<(typeof CPU_OPTION)[keyof typeof CPU_OPTION], boolean>>;

const CONFLICTS = [
  ['full-pcpus-only', 'distribute-cpus-across-cores'],
  ['distribute-cpus-across-numa', 'distribute-cpus-across-cores'],
  ['prefer-align-cpus-by-uncorecache', 'distribute-cpus-across-cores'],
  ['prefer-align-cpus-by-uncorecache', 'distribute-cpus-across-numa'],
] as const;

export const NO_CPU_OPTIONS: CpuOptions = Object.freeze(
  Object.fromEntries(Object.values(CPU_OPTION).map((option) => [option, false])) as CpuOptions,
);

/** Options with which the kubelet refuses to start. */
export class OptionError extends Error {}

/**
 * Parses the options of the static CPU manager.
 * @throws OptionError if one is unknown, is not a boolean, or excludes another
 * Source: pkg/kubelet/cm/cpumanager/policy_options.go, NewStaticPolicyOptions.
 */
export function readCpuOptions(given: Readonly<Record<string, string>> = {}): CpuOptions {
  const options = { ...NO_CPU_OPTIONS };
  for (const [name, value] of Object.entries(given)) {
    if (!Object.hasOwn(CPU_OPTION, name)) throw new OptionError(`unknown CPU manager policy option ${name}`);
    options[CPU_OPTION[name as keyof typeof CPU_OPTION]] = readBoolean(name, value);
  }
  for (const [one, other] of CONFLICTS) {
    if (options[CPU_OPTION[one]] && options[CPU_OPTION[other]]) {
      throw new OptionError(`CPU manager policy options ${one} and ${other} exclude each other`);
    }
  }
  return Object.freeze(options);
}

/**
 * Parses the options of the topology manager.
 * @throws OptionError if one is unknown or has an invalid value
 * Source: pkg/kubelet/cm/topologymanager/policy_options.go.
 */
export function readTopologyOptions(given: Readonly<Record<string, string>> = {}) {
  let preferClosest = false;
  let maxCells = DEFAULT_MAX_CELLS;
  for (const [name, value] of Object.entries(given)) {
    if (name === 'prefer-closest-numa-nodes') preferClosest = readBoolean(name, value);
    else if (name === 'max-allowable-numa-nodes') maxCells = readMaxCells(value);
    else throw new OptionError(`unknown topology manager policy option ${name}`);
  }
  return { preferClosest, maxCells };
}

function readMaxCells(value: string): number {
  const cells = /^\+?[0-9]+$/.test(value) ? Number(value) : Number.NaN;
  if (!(cells >= DEFAULT_MAX_CELLS)) {
    throw new OptionError(
      `topology manager policy option max-allowable-numa-nodes=${value}: expected a number from 8 up`,
    );
  }
  return cells;
}

/** Parses a boolean in the forms of Go's strconv.ParseBool. */
function readBoolean(name: string, value: string): boolean {
  if (['1', 't', 'T', 'TRUE', 'true', 'True'].includes(value)) return true;
  if (['0', 'f', 'F', 'FALSE', 'false', 'False'].includes(value)) return false;
  throw new OptionError(`policy option ${name}=${value}: expected true or false`);
}

/** Differences between kubelet versions that affect predictions. */
export interface Behaviour {
  /**
   * NUMA nodes for which the device manager creates hints: all nodes of the host, which includes wide hints that can
   * merge with a wide CPU hint, or, since kubernetes #138244, only nodes that have such a device.
   */
  readonly deviceHints: 'all-nodes' | 'device-nodes';
}

/**
 * Behaviour by minor version of Kubernetes 1. Each row was compared with the source of that version, file by file: the
 * CPU, device, memory and topology managers of 1.33.13, 1.34.9, 1.35.6 and 1.36.2. Other versions are not
 * predicted.
 *
 * A distribution may backport a change, which its version does not show (OpenShift has #138244 in its 1.35).
 */
const BEHAVIOUR: Readonly<Record<number, Behaviour>> = {
  33: { deviceHints: 'all-nodes' },
  34: { deviceHints: 'all-nodes' },
  35: { deviceHints: 'all-nodes' },
  36: { deviceHints: 'device-nodes' },
};

export const PREDICTED_VERSIONS = '1.33 to 1.36';

/** The behaviour of a kubelet version, or undefined if it is not predicted. @param version such as `v1.36.2` */
export function behaviourOf(version: string): Behaviour | undefined {
  const match = /^v?1\.([0-9]+)(?:[.+-]|$)/.exec(version);
  return match ? BEHAVIOUR[Number(match[1])] : undefined;
}
