import { type NodeTopologyStatus, nodeTopologyStatus } from '../../kube/node-topology.ts';
import { cut, issuesText, PlumblineError } from '../../model/errors.ts';
import { type ReportCondition, withTimes } from './status.ts';

const { shape } = nodeTopologyStatus;

/** Without these a report would be false. */
const required = nodeTopologyStatus.pick({ cells: true, cores: true, reserved: true, assignments: true, claims: true });

/** Parts that are complete or absent: a part of them would be false. */
const OPTIONAL = [
  ...(['sockets', 'uncores', 'distances', 'isolated', 'offline', 'pmdCPUs', 'tunnel', 'devices'] as const),
  ...(['physnets', 'pinning', 'refusals', 'interference'] as const),
] as const;

const MAX_WORD_CHARACTERS = 64;
const MAX_CONDITION_CHARACTERS = 4096;

/** Maximum characters of a whole report. The API server's store accepts a MiB and a half. */
const MAX_REPORT_CHARACTERS = 1024 * 1024;

/** The host cannot be reported: without the parts that exceed a limit, the report would be false. */
class ReportLimitError extends PlumblineError {}

/**
 * Makes a report fit the definition. The condition ReportComplete exists only while it leaves out parts that do not
 * fit. @param now RFC 3339 @throws ReportLimitError if the host itself, or the owners of its CPUs, do not fit
 */
export function fitReport(
  status: NodeTopologyStatus,
  before: readonly ReportCondition[] | undefined,
  now: string,
): NodeTopologyStatus {
  const leftOut: string[] = [];
  const fitted = withoutLongNames(fitParts(status, leftOut), leftOut);
  const { error } = required.safeParse(fitted);
  if (error) {
    const why = `cannot report the node: its NodeTopology has no room for it: ${issuesText(error)}`;
    throw new ReportLimitError('report-limit', why);
  }
  const conditions: ReportCondition[] = (fitted.conditions ?? []).map((condition) => {
    return { ...condition, message: cut(condition.message, MAX_CONDITION_CHARACTERS) };
  });
  if (leftOut.length === 0) return { ...fitted, conditions };
  const message = cut(`left out of the report: ${leftOut.join('; ')}`, MAX_CONDITION_CHARACTERS);
  const incomplete = { type: 'ReportComplete', status: 'False', reason: 'TooLarge', message } as const;
  return { ...fitted, conditions: [...conditions, ...withTimes([incomplete], before ?? [], now)] };
}

/** Drops the optional parts that do not fit, and cuts texts. */
function fitParts(status: NodeTopologyStatus, leftOut: string[]): NodeTopologyStatus {
  const { kubeletVersion, cpuManager, topologyManager, memoryManager } = status;
  const fitted = { ...status, assignments: status.assignments.map(fitNames) };
  for (const part of OPTIONAL) {
    if (shape[part].safeParse(fitted[part]).success) continue;
    delete fitted[part];
    leftOut.push(part);
  }
  if (kubeletVersion !== undefined) fitted.kubeletVersion = cut(kubeletVersion, MAX_WORD_CHARACTERS);
  fitted.cpuManager = fitManager('cpuManager', cpuManager, leftOut);
  if (topologyManager) fitted.topologyManager = fitManager('topologyManager', topologyManager, leftOut);
  if (memoryManager) {
    const policy = cut(memoryManager.policy, MAX_WORD_CHARACTERS);
    const fits = shape.memoryManager.safeParse({ ...memoryManager, policy }).success;
    fitted.memoryManager = fits ? { ...memoryManager, policy } : { policy };
    if (!fits) leftOut.push('memoryManager.cells');
  }
  return fitted;
}

type Manager = NodeTopologyStatus['cpuManager'] & { readonly scope?: string | undefined };

/** Keeps or drops all of the administrator's options: a shortened one would be a different option. */
function fitManager<One extends Manager>(part: string, { options, ...manager }: One, leftOut: string[]) {
  const fits = shape.cpuManager.shape.options.safeParse(options).success;
  if (!fits) leftOut.push(`${part}.options`);
  return {
    ...manager,
    policy: cut(manager.policy, MAX_WORD_CHARACTERS),
    ...(manager.scope !== undefined && { scope: cut(manager.scope, MAX_WORD_CHARACTERS) }),
    ...(fits && options !== undefined && { options }),
  };
}

const NAME_LIMITS: Readonly<Record<string, number>> = { podUID: 64, namespace: 63, podName: 253, container: 63 };

/** Shortens names to these limits; names from a file may be longer. */
function fitNames<Entry extends object>(entry: Entry): Entry {
  const shortened = Object.entries(entry).map(([key, value]: [string, unknown]) => {
    return [key, typeof value === 'string' ? value.slice(0, NAME_LIMITS[key]) : value];
  });
  return Object.fromEntries(shortened) as Entry;
}

/** Drops pod names, which are for display only: the uid identifies the pod. */
function withoutLongNames(status: NodeTopologyStatus, leftOut: string[]): NodeTopologyStatus {
  if (JSON.stringify(status).length <= MAX_REPORT_CHARACTERS) return status;
  leftOut.push('assignments.podName');
  const assignments = status.assignments.map(({ podUID, container, cpus }) => ({ podUID, container, cpus }));
  return { ...status, assignments };
}
