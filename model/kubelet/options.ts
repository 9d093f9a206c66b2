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

/** @throws OptionError if unknown, no boolean or excluded by another. Source: cpumanager/policy_options.go. */
export function readCpuOptions(optionTexts: Readonly<Record<string, string>> = {}): CpuOptions {
  const options = { ...NO_CPU_OPTIONS };
  for (const [name, value] of Object.entries(optionTexts)) {
    if (!Object.hasOwn(CPU_OPTION, name)) throw new OptionError(`unknown CPU manager policy option ${name}`);
    options[CPU_OPTION[name as keyof typeof CPU_OPTION]] = readBoolean(name, value);
  }
  for (const [first, second] of CONFLICTS) {
    if (options[CPU_OPTION[first]] && options[CPU_OPTION[second]]) {
      throw new OptionError(`CPU manager policy options ${first} and ${second} are mutually exclusive`);
    }
  }
  return Object.freeze(options);
}

/** @throws OptionError if unknown or invalid. Source: pkg/kubelet/cm/topologymanager/policy_options.go. */
export function readTopologyOptions(optionTexts: Readonly<Record<string, string>> = {}) {
  let preferClosest = false;
  let maxCells = DEFAULT_MAX_CELLS;
  for (const [name, value] of Object.entries(optionTexts)) {
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

/** As Go's strconv.ParseBool. */
function readBoolean(name: string, value: string): boolean {
  if (['1', 't', 'T', 'TRUE', 'true', 'True'].includes(value)) return true;
  if (['0', 'f', 'F', 'FALSE', 'false', 'False'].includes(value)) return false;
  throw new OptionError(`policy option ${name}=${value}: expected true or false`);
}
