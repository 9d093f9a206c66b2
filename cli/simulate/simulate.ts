import { freeCpus, type ReportedHost } from '../../diagnosis/hosts.ts';
import { NOT_PREDICTED } from '../../diagnosis/opinions.ts';
import { isReportedResource } from '../../model/kubelet/report.ts';
import { stateText } from '../../model/kubelet/usage.ts';
import { type PlacementHost, type PlacementNeeds, withPod } from '../../model/placement/needs.ts';
import { judgeHost, type NodeVerdict, type Refused, refuse } from '../../model/placement/verdict.ts';
import type { Demand } from './demand.ts';

export type Simulation = ReturnType<typeof simulate>;

export interface DemandOutcome extends Pick<Demand, 'name' | 'cpus' | 'padding'> {
  readonly requested: number | undefined;
  readonly placed: number;
  readonly refusals: Readonly<Record<string, number>>;
}

export interface Circumstances {
  readonly key: string;
  readonly refusals: ReadonlyMap<Demand, Pick<Refused, 'text'> | undefined>;
  readonly inFlight: readonly PlacementNeeds[];
}

const NONE: Circumstances = { key: '', refusals: new Map(), inFlight: [] };

interface Class {
  readonly key: string;
  readonly host: PlacementHost;
  readonly circumstances: Circumstances;
  /** The last node is used first. */
  readonly nodes: string[];
  readonly verdicts: Map<Demand, NodeVerdict>;
}

/** Each on the best node; equal nodes are evaluated once. @param progress gets the number placed */
export function simulate(
  hosts: readonly ReportedHost[],
  demands: readonly Demand[],
  progress: (placed: number) => void = () => {},
  circumstancesOf: (host: ReportedHost, demands: readonly Demand[]) => Circumstances = () => NONE,
) {
  const classes = classesOf(hosts, (host) => circumstancesOf(host, demands));
  const placements = new Map<string, string[]>();
  let all = 0;
  const vms = demands.map((demand): DemandOutcome => {
    let placed = 0;
    while (demand.count === undefined || placed < demand.count) {
      const best = bestOf(classes, demand);
      if (best === undefined) break;
      const node = give(classes, best, demand, `${demand.name}#${all}`);
      placements.set(node, [...(placements.get(node) ?? []), demand.name]);
      placed++;
      progress(++all);
    }
    const done = demand.count !== undefined && placed === demand.count;
    const { name, cpus, padding, count: requested } = demand;
    return { name, cpus, padding, requested, placed, refusals: done ? {} : refusalsOf(classes, demand) };
  });
  const smt = hosts.some(({ host }) => host.host.threadsPerCore > 1);
  return { smt, ...countsOf(hosts, classes, demands, vms), vms, placements: Object.fromEntries(placements) };
}

const keyOf = (alike: string, { key }: Circumstances) => (key === '' ? alike : `${alike}\n${key}`);

function classesOf(
  hosts: readonly ReportedHost[],
  circumstancesOf: (host: ReportedHost) => Circumstances,
): Map<string, Class> {
  const classes = new Map<string, Class>();
  for (const reported of [...hosts].reverse()) {
    const { name } = reported;
    const circumstances = circumstancesOf(reported);
    const key = keyOf(reported.alike, circumstances);
    const existing = classes.get(key);
    if (existing) existing.nodes.push(name);
    else classes.set(key, { key, host: reported.host, circumstances, nodes: [name], verdicts: new Map() });
  }
  return classes;
}

function verdictOn(nodeClass: Class, demand: Demand): NodeVerdict {
  const stored = nodeClass.verdicts.get(demand);
  if (stored !== undefined) return stored;
  const { host, circumstances } = nodeClass;
  const filtered = circumstances.refusals.get(demand);
  const verdict =
    (filtered && refuse('other', filtered.text)) ??
    missingDevice(demand, host) ??
    judgeHost(demand.needs, host, circumstances.inFlight, 'count-check');
  nodeClass.verdicts.set(demand, verdict);
  return verdict;
}

/** The kubelet gets no pod for devices that its node does not have: kube-scheduler refuses it. */
function missingDevice({ needs }: Demand, { devices }: PlacementHost): Refused | undefined {
  const resources = needs.request.containers.flatMap((container) => [...container.devices.keys()]);
  const isMissing = (name: string) => isReportedResource(name) && devices?.every(({ resource }) => resource !== name);
  const missing = [...new Set(resources)].filter(isMissing);
  if (missing.length === 0) return undefined;
  return refuse('other', `${missing.join(', ')} ${missing.length === 1 ? 'is' : 'are'} not on the node`);
}

function bestOf(classes: ReadonlyMap<string, Class>, demand: Demand): Class | undefined {
  let best: { readonly nodeClass?: Class; readonly score: number } = { score: Number.NEGATIVE_INFINITY };
  for (const nodeClass of classes.values()) {
    const verdict = verdictOn(nodeClass, demand);
    if (verdict.fits && verdict.cpus !== undefined && verdict.score > best.score)
      best = { nodeClass, score: verdict.score };
  }
  return best.nodeClass;
}

function give(classes: Map<string, Class>, from: Class, demand: Demand, uid: string): string {
  const node = from.nodes.pop() ?? '';
  if (from.nodes.length === 0) classes.delete(from.key);
  const make = from.key.split(' ')[0] ?? '';
  const host = withPod(from.host, { ...demand.needs.request, uid });
  const key = keyOf(`${make} ${host.owned} ${host.state ? stateText(host.state) : ''}`, from.circumstances);
  const existing = classes.get(key);
  if (existing) existing.nodes.push(node);
  else classes.set(key, { key, host, circumstances: from.circumstances, nodes: [node], verdicts: new Map() });
  return node;
}

function refusalsOf(classes: ReadonlyMap<string, Class>, demand: Demand): Record<string, number> {
  const refusals: Record<string, number> = {};
  for (const nodeClass of classes.values()) {
    const verdict = verdictOn(nodeClass, demand);
    const text = verdict.fits ? NOT_PREDICTED : verdict.text;
    refusals[text] = (refusals[text] ?? 0) + nodeClass.nodes.length;
  }
  return refusals;
}

function countsOf(
  hosts: readonly ReportedHost[],
  classes: ReadonlyMap<string, Class>,
  demands: readonly Demand[],
  vms: readonly DemandOutcome[],
) {
  const sum = (numbers: readonly number[]) => numbers.reduce((total, number) => total + number, 0);
  const after = [...classes.values()].map((nodeClass) => {
    const { host, owned } = nodeClass.host;
    const free = freeCpus(nodeClass.host);
    const fits = demands.some((demand) => verdictOn(nodeClass, demand).fits);
    const split = host.cores.filter((core) => core.intersects(owned) && core.intersects(free)).length;
    return { nodes: nodeClass.nodes.length, free: free.size, stranded: fits ? 0 : free.size, split };
  });
  const times = (pick: (nodeClass: (typeof after)[number]) => number) =>
    sum(after.map((nodeClass) => nodeClass.nodes * pick(nodeClass)));
  return {
    nodes: hosts.length,
    cpus: {
      total: sum(hosts.map(({ host }) => host.host.online.size)),
      reserved: sum(hosts.map(({ host }) => host.reserved.size)),
      before: sum(hosts.map(({ host }) => host.owned.size)),
      used: sum(vms.map(({ cpus, placed }) => cpus * placed)),
      padding: sum(vms.map(({ padding, placed }) => padding * placed)),
      free: times(({ free }) => free),
      stranded: times(({ stranded }) => stranded),
    },
    splitCores: times(({ split }) => split),
  };
}
