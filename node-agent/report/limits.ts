import {
  MAX_DEVICE_GROUPS,
  MAX_DEVICE_RESOURCES,
  MAX_PINNING,
  MAX_PINNING_MESSAGE,
  MAX_REFUSAL_MESSAGE,
  MAX_REFUSALS,
  type NodeTopologyStatus,
} from '../../kube/node-topology.ts';
import { cut, PlumblineError } from '../../model/errors.ts';
import { type Condition, withTimes } from './conditions.ts';

/** Limits of the NodeTopology definition. The API server rejects a whole report that exceeds one. */
export const LIMITS = {
  cells: 32,
  cores: 2048,
  coreText: 64,
  sockets: 64,
  uncores: 1024,
  /** Maximum characters of a CPU list. */
  cpuList: 4096,
  assignments: 2048,
  physnets: 256,
  deviceResources: MAX_DEVICE_RESOURCES,
  deviceGroups: MAX_DEVICE_GROUPS,
  /** Maximum characters of a list of NUMA nodes. */
  cellList: 256,
  pinning: MAX_PINNING,
  pinningMessage: MAX_PINNING_MESSAGE,
  refusals: MAX_REFUSALS,
  refusalMessage: MAX_REFUSAL_MESSAGE,
  /** Maximum entries of a map, such as the kubelet's options or page sizes. */
  entries: 32,
  /** Maximum characters of a policy, an option or a uid. */
  word: 64,
  /** Maximum characters of a namespace or container name, and of a pod name. */
  label: 63,
  name: 253,
  conditionMessage: 4096,
} as const;

/** Maximum characters of a whole report. The API server's store accepts a MiB and a half. */
const MOST_CHARACTERS = 1024 * 1024;

/** The host cannot be reported: without the parts that exceed a limit, the report would be false. */
export class ReportLimitError extends PlumblineError {
  constructor(what: string, found: number, most: number) {
    super('report-limit', `cannot report the node: it has ${found} ${what}, and a report has room for ${most}`);
  }
}

/**
 * Makes a report fit the definition, whatever the node has. It leaves out optional parts that do not fit, and reports
 * them in the condition ReportComplete, which exists only then.
 * @param before conditions of the last published report
 * @param now RFC 3339
 * @throws ReportLimitError if the host itself, or the owners of its CPUs, do not fit
 */
export function fitReport(
  status: NodeTopologyStatus,
  before: readonly Condition[] | undefined,
  now: string,
): NodeTopologyStatus {
  assertHostFits(status);
  const leftOut: string[] = [];
  const fitted = withoutLongNames(fitParts(status, leftOut), leftOut);
  const conditions: Condition[] = (fitted.conditions ?? []).map((one) => ({
    ...one,
    message: cut(one.message, LIMITS.conditionMessage),
  }));
  if (leftOut.length === 0) return { ...fitted, conditions };
  const message = cut(`left out of the report: ${leftOut.join('; ')}`, LIMITS.conditionMessage);
  const incomplete = { type: 'ReportComplete', status: 'False', reason: 'TooLarge', message } as const;
  return { ...fitted, conditions: [...conditions, ...withTimes([incomplete], before ?? [], now)] };
}

function assertHostFits({ cells, cores, reserved, assignments }: NodeTopologyStatus): void {
  const assertAtMost = (what: string, found: number, most: number) => {
    if (found > most) throw new ReportLimitError(what, found, most);
  };
  assertAtMost('NUMA nodes', cells.length, LIMITS.cells);
  assertAtMost('cores', cores.length, LIMITS.cores);
  assertAtMost('containers with CPUs', assignments.length, LIMITS.assignments);
  for (const text of cores) assertAtMost('characters for the CPUs of a core', text.length, LIMITS.coreText);
  for (const { cpus } of cells) assertAtMost('characters for the CPUs of a NUMA node', cpus.length, LIMITS.cpuList);
  assertAtMost('characters for the reserved CPUs', reserved.length, LIMITS.cpuList);
  for (const { cpus } of assignments) {
    assertAtMost('characters for the CPUs of a container', cpus.length, LIMITS.cpuList);
  }
}

/** Fits the optional parts: each completely or not at all, and lists up to their limit. */
function fitParts(status: NodeTopologyStatus, leftOut: string[]): NodeTopologyStatus {
  const { sockets, uncores, distances, isolated, pmdCPUs, tunnel, devices, memoryManager, ...rest } = status;
  const whole = <Value>(what: string, value: Value | undefined, fits: (value: Value) => boolean): Value | undefined => {
    if (value === undefined || fits(value)) return value;
    leftOut.push(what);
    return undefined;
  };
  const first = <Item>(
    what: string,
    items: readonly Item[],
    most: number,
    fits: (item: Item) => boolean = () => true,
  ): Item[] => {
    const kept = items.filter(fits).slice(0, most);
    if (items.length > kept.length) leftOut.push(`${items.length - kept.length} of ${items.length} ${what}`);
    return kept;
  };
  const areGroups = (most: number) => (groups: readonly { readonly cpus: string }[]) =>
    groups.length <= most && groups.every(({ cpus }) => cpus.length <= LIMITS.cpuList);
  const isList = (text: string) => text.length <= LIMITS.cpuList;
  const optional = {
    sockets: whole('the sockets', sockets, areGroups(LIMITS.sockets)),
    uncores: whole('the last-level caches', uncores, areGroups(LIMITS.uncores)),
    distances: whole('the distances', distances, (rows) => {
      return [Object.keys(rows), ...Object.values(rows)].every(({ length }) => length <= LIMITS.cells);
    }),
    isolated: whole('the isolated CPUs', isolated, isList),
    pmdCPUs: whole('the CPUs of poll mode drivers', pmdCPUs, isList),
    tunnel: whole('the tunnel', tunnel, ({ cells }) => cells.length <= LIMITS.cellList),
    // Without one of its resources, the list would say that the kubelet has no such devices.
    devices: whole('the devices', devices, (resources) => {
      const groups = resources.flatMap((one) => one.groups);
      const fits = ({ resource, groups }: (typeof resources)[number]) =>
        resource.length <= LIMITS.name && groups.length <= LIMITS.deviceGroups;
      return (
        resources.length <= LIMITS.deviceResources &&
        resources.every(fits) &&
        groups.every(({ cells = '' }) => cells.length <= LIMITS.cellList)
      );
    }),
    memoryManager: memoryManager && {
      policy: cut(memoryManager.policy, LIMITS.word),
      cells: whole('the memory of NUMA nodes', memoryManager.cells, (cells) => {
        const maps = cells.flatMap(({ hugePages = {}, reserved = {}, state }) => [
          hugePages,
          reserved,
          state?.free ?? {},
        ]);
        return cells.length <= LIMITS.cells && maps.every((map) => Object.keys(map).length <= LIMITS.entries);
      }),
    },
  };
  const { kubeletVersion, cpuManager, topologyManager, physnets = [], pinning, refusals } = rest;
  return defined({
    ...rest,
    ...optional,
    memoryManager: optional.memoryManager && defined(optional.memoryManager),
    kubeletVersion: kubeletVersion && cut(kubeletVersion, LIMITS.word),
    cpuManager: fitManager('the options of the CPU manager', cpuManager, leftOut),
    topologyManager: topologyManager && fitManager('the options of the topology manager', topologyManager, leftOut),
    assignments: rest.assignments.map(fitNames),
    physnets: first('physnets', physnets, LIMITS.physnets, ({ name, cells }) => {
      return name.length <= LIMITS.name && cells.length <= LIMITS.cellList;
    }),
    pinning:
      pinning &&
      first('VMs with a CPU mask', pinning, LIMITS.pinning).map((one) =>
        fitTexts(fitNames(one), LIMITS.pinningMessage),
      ),
    refusals:
      refusals &&
      first('refused containers', refusals, LIMITS.refusals).map((one) =>
        fitTexts(fitNames(one), LIMITS.refusalMessage),
      ),
  });
}

type Manager = NodeTopologyStatus['cpuManager'] & { readonly scope?: string | undefined };

/** Keeps or drops the administrator's options: a shortened one would be a different option. */
function fitManager<One extends Manager>(what: string, manager: One, leftOut: string[]): One {
  const { options = {} } = manager;
  const entries = Object.entries(options);
  const fits = ([key, value]: [string, string]) => key.length <= LIMITS.word && value.length <= LIMITS.word;
  const kept = entries.filter(fits).slice(0, LIMITS.entries);
  if (kept.length < entries.length) leftOut.push(`${entries.length - kept.length} of ${what}`);
  return {
    ...manager,
    policy: cut(manager.policy, LIMITS.word),
    ...(manager.scope !== undefined && { scope: cut(manager.scope, LIMITS.word) }),
    ...(manager.options !== undefined && { options: Object.fromEntries(kept) }),
  };
}

interface Named {
  readonly podUID?: string | undefined;
  readonly namespace?: string | undefined;
  readonly podName?: string | undefined;
  readonly container?: string | undefined;
}

/** Shortens names to the limits of Kubernetes; names from a file may be longer. */
function fitNames<One extends Named>(one: One): One {
  const { podUID, namespace, podName, container } = one;
  return {
    ...one,
    ...(podUID !== undefined && { podUID: podUID.slice(0, LIMITS.word) }),
    ...(namespace !== undefined && { namespace: namespace.slice(0, LIMITS.label) }),
    ...(podName !== undefined && { podName: podName.slice(0, LIMITS.name) }),
    ...(container !== undefined && { container: container.slice(0, LIMITS.label) }),
  };
}

function fitTexts<One extends { readonly message?: string | undefined }>(one: One, most: number): One {
  return one.message === undefined ? one : { ...one, message: cut(one.message, most) };
}

/** Drops pod names, which are for display only: the uid identifies the pod. */
function withoutLongNames(status: NodeTopologyStatus, leftOut: string[]): NodeTopologyStatus {
  if (JSON.stringify(status).length <= MOST_CHARACTERS) return status;
  leftOut.push('the names of pods');
  return {
    ...status,
    assignments: status.assignments.map(({ podUID, container, cpus }) => ({ podUID, container, cpus })),
  };
}

/** Removes undefined members: the object from the API server, which the report is compared with, has none. */
function defined<One extends object>(one: { [Key in keyof One]: One[Key] | undefined }): One {
  return Object.fromEntries(Object.entries(one).filter(([, value]) => value !== undefined)) as One;
}
