import {
  MAX_PHYSNETS,
  MAX_PINNING,
  MAX_PINNING_MESSAGE,
  MAX_REFUSAL_MESSAGE,
  MAX_REFUSALS,
  type NodeTopologyStatus,
  nodeTopologyStatus,
  physnet,
} from '../../kube/node-topology.ts';
import { cut, issuesText, PlumblineError } from '../../model/errors.ts';
import { type ReportCondition, withTimes } from './status.ts';

const { shape } = nodeTopologyStatus;

/** Without these a report would be false. */
const required = nodeTopologyStatus.pick({ cells: true, cores: true, reserved: true, assignments: true, claims: true });

/** Parts that are complete or absent. Without one of its resources, `devices` would say that there are none. */
const OPTIONAL = {
  sockets: 'the sockets',
  uncores: 'the last-level caches',
  distances: 'the distances',
  isolated: 'the isolated CPUs',
  offline: 'the offline CPUs',
  pmdCPUs: 'the CPUs of poll mode drivers',
  tunnel: 'the tunnel',
  devices: 'the devices',
} as const;

/** Maximum entries of a map, such as the kubelet's options. */
const MAX_ENTRIES = 32;
/** Maximum characters of a policy or an option. */
const MAX_WORD_CHARACTERS = 64;
const MAX_CONDITION_CHARACTERS = 4096;

/** Maximum characters of a whole report. The API server's store accepts a MiB and a half. */
const MAX_REPORT_CHARACTERS = 1024 * 1024;

/** The host cannot be reported: without the parts that exceed a limit, the report would be false. */
export class ReportLimitError extends PlumblineError {
  constructor(problem: string) {
    super('report-limit', `cannot report the node: its NodeTopology has no room for it: ${problem}`);
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
  before: readonly ReportCondition[] | undefined,
  now: string,
): NodeTopologyStatus {
  const leftOut: string[] = [];
  const fitted = withoutLongNames(fitParts(status, leftOut), leftOut);
  const { error } = required.safeParse(fitted);
  if (error) throw new ReportLimitError(issuesText(error));
  const conditions: ReportCondition[] = (fitted.conditions ?? []).map((one) =>
    fitMessage(one, MAX_CONDITION_CHARACTERS),
  );
  if (leftOut.length === 0) return { ...fitted, conditions };
  const message = cut(`left out of the report: ${leftOut.join('; ')}`, MAX_CONDITION_CHARACTERS);
  const incomplete = { type: 'ReportComplete', status: 'False', reason: 'TooLarge', message } as const;
  return { ...fitted, conditions: [...conditions, ...withTimes([incomplete], before ?? [], now)] };
}

/** Fits the optional parts: each completely or not at all, and lists up to their limit. */
function fitParts(status: NodeTopologyStatus, leftOut: string[]): NodeTopologyStatus {
  const fitted = { ...status, assignments: status.assignments.map(fitNames) };
  for (const [part, name] of Object.entries(OPTIONAL)) {
    if (shape[part as keyof typeof OPTIONAL].safeParse(fitted[part as keyof typeof OPTIONAL]).success) continue;
    delete fitted[part as keyof typeof OPTIONAL];
    leftOut.push(name);
  }
  const first = <Item>(name: string, items: readonly Item[], maxItems: number): Item[] => {
    const fitting = items.slice(0, maxItems);
    if (items.length > maxItems) leftOut.push(`${items.length - maxItems} of ${items.length} ${name}`);
    return fitting;
  };
  const { kubeletVersion, cpuManager, topologyManager, memoryManager, physnets, pinning, refusals } = status;
  if (kubeletVersion !== undefined) fitted.kubeletVersion = cut(kubeletVersion, MAX_WORD_CHARACTERS);
  fitted.cpuManager = fitManager('the options of the CPU manager', cpuManager, leftOut);
  if (topologyManager) {
    fitted.topologyManager = fitManager('the options of the topology manager', topologyManager, leftOut);
  }
  if (memoryManager) {
    const policy = cut(memoryManager.policy, MAX_WORD_CHARACTERS);
    const fits = shape.memoryManager.safeParse({ ...memoryManager, policy }).success;
    fitted.memoryManager = fits ? { ...memoryManager, policy } : { policy };
    if (!fits) leftOut.push('the memory of NUMA nodes');
  }
  if (physnets) {
    const fitting = physnets.filter((one) => physnet.safeParse(one).success).slice(0, MAX_PHYSNETS);
    fitted.physnets = fitting;
    const missing = physnets.length - fitting.length;
    if (missing > 0) leftOut.push(`${missing} of ${physnets.length} physnets`);
  }
  if (pinning) {
    const fitting = first('VMs with a CPU mask', pinning, MAX_PINNING);
    fitted.pinning = fitting.map((one) => fitMessage(fitNames(one), MAX_PINNING_MESSAGE));
  }
  if (refusals) {
    const fitting = first('refused containers', refusals, MAX_REFUSALS);
    fitted.refusals = fitting.map((one) => fitMessage(fitNames(one), MAX_REFUSAL_MESSAGE));
  }
  return fitted;
}

type Manager = NodeTopologyStatus['cpuManager'] & { readonly scope?: string | undefined };

/** Keeps or drops the administrator's options: a shortened one would be a different option. */
function fitManager<One extends Manager>(what: string, manager: One, leftOut: string[]): One {
  const { options = {} } = manager;
  const entries = Object.entries(options);
  const fits = ([key, value]: [string, string]) =>
    key.length <= MAX_WORD_CHARACTERS && value.length <= MAX_WORD_CHARACTERS;
  const fitting = entries.filter(fits).slice(0, MAX_ENTRIES);
  if (fitting.length < entries.length) leftOut.push(`${entries.length - fitting.length} of ${what}`);
  return {
    ...manager,
    policy: cut(manager.policy, MAX_WORD_CHARACTERS),
    ...(manager.scope !== undefined && { scope: cut(manager.scope, MAX_WORD_CHARACTERS) }),
    ...(manager.options !== undefined && { options: Object.fromEntries(fitting) }),
  };
}

/** Maximum characters of names in Kubernetes. */
const NAME_LIMITS = { podUID: 64, namespace: 63, podName: 253, container: 63 };

/** Shortens names to these limits; names from a file may be longer. */
function fitNames<Entry extends object>(entry: Entry): Entry {
  const fit = ([key, value]: [string, unknown]) => {
    const most = NAME_LIMITS[key as keyof typeof NAME_LIMITS] as number | undefined;
    return [key, typeof value === 'string' ? value.slice(0, most) : value];
  };
  return Object.fromEntries(Object.entries(entry).map(fit)) as Entry;
}

function fitMessage<One extends { readonly message?: string | undefined }>(entry: One, most: number): One {
  return entry.message === undefined ? entry : { ...entry, message: cut(entry.message, most) };
}

/** Drops pod names, which are for display only: the uid identifies the pod. */
function withoutLongNames(status: NodeTopologyStatus, leftOut: string[]): NodeTopologyStatus {
  if (JSON.stringify(status).length <= MAX_REPORT_CHARACTERS) return status;
  leftOut.push('the names of pods');
  return {
    ...status,
    assignments: status.assignments.map(({ podUID, container, cpus }) => ({ podUID, container, cpus })),
  };
}
