import type { Asks } from '../../diagnosis/asks.ts';
import { freeCpus, networksOn } from '../../diagnosis/hosts.ts';
import { remedyLines } from '../../diagnosis/remedies.ts';
import type { Stage } from '../../diagnosis/state.ts';
import type { KubeClient } from '../../kube/client.ts';
import { countText, cpusText } from '../../model/amounts.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import { cellsOfNetwork, type PlacementHost } from '../../model/placement/needs.ts';
import { type ClusterFlags, usingCluster } from '../support/cluster.ts';
import { drawCpuMap } from '../support/cpu-map.ts';
import { readHost } from '../support/lists.ts';
import { ageText, type OutputFormat, print } from '../support/output.ts';
import {
  cutLine,
  joinParts,
  type Line,
  paint,
  remedyParagraph,
  type Style,
  someNames,
  wrap,
} from '../support/terminal.ts';
import { type Explanation, explain, isOfPlumbline } from './explain.ts';
import { parseReference } from './reference.ts';
import type { ExtenderChoice } from './search.ts';
import { readSubject } from './subject.ts';

interface ExplainFlags extends ClusterFlags, ExtenderChoice {
  readonly output?: OutputFormat;
}

/** Prints why a VM or pod does not run, or where it runs. @throws CliError, KubeError */
export function run(kind: string, name: string | undefined, flags: ExplainFlags): Promise<void> {
  const reference = parseReference(kind, name, flags.namespace);
  return usingCluster(flags, async (cluster) => {
    const subject = await readSubject(cluster.client, reference, cluster.namespace);
    const explanation = await explain(cluster, subject, flags, Date.now());
    const isForPeople = flags.output === undefined || flags.output === 'wide';
    const nearest = isForPeople ? await readNearest(cluster.client, explanation) : undefined;
    await print(flags.output, explanation, {
      text: ({ width }, wide) => [
        ...explanationLines(explanation, wide ? Number.POSITIVE_INFINITY : width, wide),
        ...(nearest === undefined ? [] : nearestLines(nearest, width)),
      ],
      name: () => (explanation.pod === undefined ? [] : [`pod/${explanation.pod}`]),
    });
  });
}

/** Limit for one screen; the rest is a count. */
const MAX_GROUPS = 8;

const STAGES: Readonly<Record<Stage, { readonly text: string; readonly style: Style }>> = {
  stopped: { text: 'is stopped', style: 'dim' },
  waiting: { text: 'is pending', style: 'yellow' },
  starting: { text: 'is starting', style: 'yellow' },
  failed: { text: 'failed', style: 'red' },
  stopping: { text: 'is being deleted', style: 'dim' },
  paused: { text: 'is paused', style: 'yellow' },
  running: { text: 'is running', style: 'green' },
  'not-as-requested': { text: 'is running, but not as requested', style: 'yellow' },
  migrating: { text: 'is running', style: 'green' },
};

const RUNS: readonly Stage[] = ['running', 'not-as-requested', 'migrating'];

/** For one screen: reason, remedies, nodes by reason. @param wide all nodes, and the numbers of each first one */
function explanationLines(explanation: Explanation, width: number, wide = false): Line[] {
  const { kind, namespace, name, state, verdict, pod, causes, scheduler, events } = explanation;
  const columns = Math.min(width, 120);
  const { text, style } = STAGES[state];
  const runs = RUNS.includes(state);
  const verdictStyle = runs && verdict === 'broken' ? 'red' : style;
  const para = (mark: string, body: string) => wrap(body, Math.max(40, columns), mark);
  const what = `${kind === 'vm' ? 'VM' : 'pod'} ${namespace}/${name}`;
  const begin = `${what} ${text}`;
  const why = `${explanation.text.startsWith('on ') ? '' : ':'} ${explanation.text}`;
  const [head = '', ...continued] = wrap(begin + why, Math.max(40, columns), '', '  ');
  const isWhole = head.startsWith(begin);
  const lines: Line[] = [
    isWhole ? [`${what} `, paint(verdictStyle, text), head.slice(begin.length)] : head,
    ...continued,
  ];
  const { migration } = explanation;
  const details = [
    pod !== undefined && kind === 'vm' ? `its launcher is ${pod}` : '',
    migration?.launcher === undefined ? '' : `its target’s launcher is ${migration.launcher}`,
    ...requestTexts(explanation),
    ...causes.map((cause) => cause.text),
  ];
  lines.push(...details.filter(Boolean).flatMap((detail) => para('  ', detail)));
  lines.push(...helpLines(explanation, Math.max(40, columns)), ...groupLines(explanation, columns, wide));
  if (scheduler !== undefined) lines.push('', [paint('bold', 'kube-scheduler says')], ...para('  ', scheduler));
  const current = runs ? events.filter(isOfPlumbline) : events;
  if (current.length > 0) lines.push('', [paint('bold', 'Events')]);
  for (const { ageSeconds, reason, component, verified, message } of current) {
    const author = verified ? component : `${component}, not verified`;
    lines.push(...para('  ', `${ageText(ageSeconds)} ago  ${reason} (${author}): ${message}`));
  }
  return lines;
}

function helpLines({ remedies, notes }: Explanation, width: number): Line[] {
  const help = remedies.flatMap((remedy) => remedyParagraph(remedyLines(remedy), width, '  - '));
  const remarks = notes.flatMap((note) => wrap(`(${note})`, width)).map((line) => [paint('dim', line)]);
  return [
    ...(help.length > 0 ? ['', [paint('bold', 'What would help')], ...help] : []),
    ...(notes.length > 0 ? ['', ...remarks] : []),
  ];
}

function requestTexts({ asks, reason, causes }: Explanation): string[] {
  if (asks === undefined || reason === 'Ended') return [];
  const reasons = [reason, ...causes.map((cause) => cause.reason)];
  const isSaid = reasons.includes('WebhookMissed') || reasons.includes('NotDecided');
  const decision = asks.webhook?.decision === 'padded' || isSaid ? undefined : asks.webhook?.text;
  return [`it requests ${asks.text.join('; ')}`, decision ?? ''];
}

function groupLines({ nodes }: Explanation, columns: number, wide: boolean): Line[] {
  if (nodes.length === 0) return [];
  const total = nodes.reduce((sum, { count }) => sum + count, 0);
  const visible = wide ? nodes : nodes.slice(0, MAX_GROUPS);
  const digits = String(Math.max(...visible.map(({ count }) => count))).length;
  const indent = ' '.repeat(digits + 4);
  const width = Math.max(40, columns);
  const lines = visible.flatMap((group): Line[] => {
    const { count, text, detail, kind } = group;
    const head = [`  ${String(count).padStart(digits)}  `, paint(kind === 'fits' ? 'green' : undefined, text)];
    const namesOf = (nodes: readonly string[], before: string) =>
      wide ? wrap(nodes, width, indent + before) : [cutLine(indent + before + someNames(nodes), columns)];
    if (detail === text) return [head, ...namesOf(group.nodes, '')];
    const [first = '', ...others] = group.nodes;
    return [head, ...wrap(`${first}: ${detail}`, width, indent), ...(count === 1 ? [] : namesOf(others, 'also '))];
  });
  const left = nodes.slice(visible.length);
  const more = left.reduce((sum, { count }) => sum + count, 0);
  return [
    '',
    [paint('bold', `Nodes by reason (${total})`)],
    ...lines,
    ...(left.length === 0 ? [] : [`  ${more} more for ${left.length} other reasons; -o wide shows all`]),
  ];
}

/** The node with the smallest shortage of CPUs or cores, in its current state. */
interface Nearest {
  readonly node: string;
  readonly host: PlacementHost;
  readonly asks: Pick<Asks, 'cpus' | 'wholeCores' | 'networks'>;
}

/** Undefined if a node accepts the pod, none lacks CPUs or cores, or the report is invalid. @throws KubeError */
async function readNearest(
  client: Pick<KubeClient, 'get'>,
  { nodes, asks }: Pick<Explanation, 'nodes' | 'asks'>,
): Promise<Nearest | undefined> {
  const short = nodes.filter(({ kind, missing }) => kind !== 'fits' && missing !== undefined);
  const [first] = short.sort((a, b) => (a.missing ?? 0) - (b.missing ?? 0));
  const node = first?.nodes[0];
  if (first === undefined || node === undefined || asks === undefined || nodes.some(({ kind }) => kind === 'fits')) {
    return undefined;
  }
  const host = (await readHost(client, node))?.host;
  return host && { node, host, asks };
}

export function nearestLines({ node, host: placement, asks }: Nearest, columns: number): Line[] {
  const { host, reserved, owned, polled, networks } = placement;
  const width = Math.min(columns, 120);
  const free = freeCpus(placement);
  const split = asks.wholeCores
    ? CpuSet.of([...free].filter((cpu) => !host.cores.some((core) => core.has(cpu) && core.isSubsetOf(free))))
    : CpuSet.EMPTY;
  const near = nearCpus(placement, asks);
  const usable = free.minus(split).intersect(near);
  const required = asks.networks.filter(({ affinity }) => affinity === 'required');
  const where = required.length === 0 ? '' : ` near ${required.map(({ kind, physnet }) => physnet ?? kind).join(', ')}`;
  const cores = host.cores.filter((core) => core.isSubsetOf(usable)).length;
  const sum = asks.wholeCores
    ? `${countText(cores, 'whole core')} free${where}, ${cpusText(usable.size)}; it needs ${asks.cpus}`
    : `${cpusText(usable.size)} free${where}; it needs ${asks.cpus}`;
  const labels = host.cells.map(({ id }) => [id, networksOn(networks, id).join(', ')] as const);
  const cellLabels = new Map(labels.filter(([, text]) => text));
  return [
    '',
    [paint('bold', `The closest node: ${node}`)],
    ...wrap(sum, Math.max(40, width), '  '),
    ...drawCpuMap({
      host,
      cellLabels,
      width,
      owners: [
        { mark: 'R', label: 'reserved', cpus: reserved, style: 'dim' },
        { mark: 'P', label: 'Open vSwitch polls', cpus: polled, style: 'red' },
        { mark: '#', label: 'owned', cpus: owned, style: 'cyan' },
        { mark: '+', label: 'could serve', cpus: usable, style: 'green' },
        { mark: '-', label: 'free, but only half a core', cpus: split, style: 'yellow' },
      ],
    }).map((line) => joinParts(['  ', line])),
  ];
}

function nearCpus({ host, networks }: PlacementHost, asks: Nearest['asks']): CpuSet {
  let near = host.online;
  for (const { kind, physnet, affinity } of asks.networks) {
    if (affinity !== 'required') continue;
    const cells = cellsOfNetwork(networks, { name: '', kind, physnet, affinity }) ?? CpuSet.EMPTY;
    near = host.cells.filter(({ id }) => !cells.has(id)).reduce((rest, { cpus }) => rest.minus(cpus), near);
  }
  return near;
}
