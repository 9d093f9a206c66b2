import { countText, cpusText } from '../../model/amounts.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import { type ClusterFlags, usingCluster } from '../support/cluster.ts';
import { type CpuOwner, chunk, drawCpuMap } from '../support/cpu-map.ts';
import { type OutputFormat, print } from '../support/output.ts';
import {
  cutLine,
  joinParts,
  type Line,
  type LinePart,
  paint,
  type Style,
  type Terminal,
  tableLines,
} from '../support/terminal.ts';
import { showRepeatedly } from '../support/watch.ts';
import { readTop, type TopView } from './read.ts';
import { type NodeMap, viewData } from './view.ts';

export interface TopFlags extends ClusterFlags {
  readonly output?: OutputFormat;
  readonly watch?: number | true;
  readonly once?: true;
}

/** Once, or until interrupted. @param usualPace seconds between drawings @throws CliError, KubeError */
export function run(nodes: readonly string[], flags: TopFlags, usualPace: number): Promise<void> {
  const { output, once, watch } = flags;
  const isLive = process.stdout.isTTY && output === undefined;
  const repeats = once !== true && (watch !== undefined || isLive);
  const seconds = typeof watch === 'number' ? watch : usualPace;
  return usingCluster(flags, ({ client }) =>
    showRepeatedly(output, repeats ? seconds : undefined, {
      read: () => readTop(client, nodes, Date.now()),
      lines: (view, terminal, wide) => linesOf(view, nodes, terminal, wide),
      show: (view) => show(view, nodes, output),
    }),
  );
}

function linesOf(view: TopView, nodes: readonly string[], terminal: Terminal, wide: boolean): Line[] {
  if (nodes.length === 0) return topLines(view, terminal, wide);
  return [...view.nodes.flatMap((node, i) => [...(i > 0 ? [''] : []), ...nodeLines(node, terminal)]), ...view.notes];
}

function show(view: TopView, nodes: readonly string[], output: OutputFormat | undefined): Promise<void> {
  const data = { nodes: view.nodes.map(viewData), notes: view.notes };
  return print(output, data, {
    text: (terminal, wide) => linesOf(view, nodes, terminal, wide),
    name: () => view.nodes.map(({ name }) => `node/${name}`),
  });
}

const COLORS = 'green cyan magenta blue yellow greenBright cyanBright magentaBright'.split(' ') as readonly Style[];

const RESERVED = { mark: 'R', label: 'reserved', style: 'dim' } as const;
const POLLED = { mark: 'P', label: 'Open vSwitch polls', style: 'red' } as const;
const PADDING = '/';
const FREE = '·';

function ownersOf({ reserved, polled, owners }: NodeMap): CpuOwner[] {
  const styled = owners.map((owner, i) => ({ ...owner, style: COLORS[i % COLORS.length]! }));
  return [
    { ...POLLED, cpus: polled },
    { ...RESERVED, cpus: reserved },
    ...styled
      .filter(({ padding }) => !padding.isEmpty)
      .map(({ padding, style }) => ({ mark: PADDING, label: '', cpus: padding, style })),
    ...styled.map(({ name, letter, cpus, style }) => ({ mark: letter, label: `${name} (${cpus.size})`, cpus, style })),
  ];
}

const paddingLabel = (nodes: readonly NodeMap[]) =>
  nodes.some(({ host }) => host.threadsPerCore > 1) ? 'completes a core' : 'padding';

/** A line for each NUMA node, with its cores side by side and the threads of a core next to each other. */
export function topLines({ nodes, notes }: TopView, terminal: Terminal, wide = false): Line[] {
  const blocks = nodes.flatMap((node) => [...compactLines(node, terminal, wide), '']);
  const padded = nodes.filter(({ owners }) => owners.some(({ padding }) => !padding.isEmpty));
  const legend = [
    `${FREE} free`,
    `${RESERVED.mark} reserved`,
    ...(nodes.some(({ polled }) => !polled.isEmpty) ? [`${POLLED.mark} ${POLLED.label}`] : []),
    ...(padded.length > 0 ? [`${PADDING} ${paddingLabel(padded)}`] : []),
    'letters: VMs',
  ].join('   ');
  const footer = [legend, ...(nodes.length > 1 ? [totalText(nodes)] : []), ...notes.map((note) => `(${note})`)];
  return [...blocks, ...footer.map((line) => [paint('dim', cutLine(line, terminal.width))])];
}

/** The sums over all nodes. The free CPUs of a node whose agent is silent are unknown. */
function totalText(nodes: readonly NodeMap[]): string {
  const isSilent = ({ remarks }: NodeMap) => remarks.some(({ reason }) => reason === 'AgentSilent');
  const sum = (list: readonly NodeMap[], value: (node: NodeMap) => number) =>
    list.reduce((total, node) => total + value(node), 0);
  const reporting = nodes.filter((node) => !isSilent(node));
  const unknown = sum(nodes.filter(isSilent), ({ free }) => free.size);
  const cores = sum(reporting, ({ freeCores }) => freeCores);
  const free = `${sum(reporting, (node) => node.free.size)} free, ${countText(cores, 'whole core')} of them`;
  const cpus = cpusText(sum(nodes, ({ host }) => host.online.size));
  return `${countText(nodes.length, 'node')}, ${cpus}: ${free}${unknown > 0 ? `, ${unknown} unknown` : ''}`;
}

function compactLines(node: NodeMap, { width }: Terminal, wide: boolean): Line[] {
  const { name, host, cells, free, freeCores, kubelet, remarks } = node;
  const owners = ownersOf(node);
  const remark = remarks.length === 0 ? '' : `  (${remarks.map(({ text }) => text).join(', ')})`;
  const counts = `${free.size} of ${host.online.size} CPUs free, ${countText(freeCores, 'whole core')}`;
  const head = cutLine(`${name}  ${counts}${remark}${wide ? `  ${kubelet}` : ''}`, width);
  const labels = cells.map(({ id, networks }) => ['  NUMA', id, ...networks].join(' '));
  const indent = Math.min(Math.max(...labels.map((label) => label.length)) + 2, Math.max(12, Math.floor(width / 2)));
  const ownerOf = ownerIndex(owners);
  const rows = cells.flatMap(({ id }, i) => {
    const cpus = host.cells.find((cell) => cell.id === id)?.cpus ?? CpuSet.EMPTY;
    const cores = host.cores.filter((core) => core.intersects(cpus)).map((core) => core.toArray());
    const widest = Math.max(1, ...cores.map((core) => core.length));
    const fitting = Math.max(1, Math.min(cores.length, Math.floor((width - indent) / (widest + 1))));
    const label = cutLine(labels[i] ?? '', indent - 1).padEnd(indent);
    return chunk(cores, fitting).map((row, at) => {
      const drawn = row.map((core) => core.map((cpu) => ownerOf.get(cpu) ?? FREE));
      return [at === 0 ? label : ' '.repeat(indent), ...joinParts(drawn, ' ')];
    });
  });
  const named = owners.filter(({ mark, label }) => label !== '' && mark !== RESERVED.mark && mark !== POLLED.mark);
  return [
    head.startsWith(name) ? [paint('bold', name), head.slice(name.length)] : head,
    ...rows,
    ...legendRows(named, width),
    ...maskedLines(node, width),
    ...(wide ? resourceRows(node, width) : []),
    ...problemLines(node, width),
  ];
}

function resourceRows({ resources, disturbed }: NodeMap, width: number): string[] {
  const taken = disturbed.map(({ namespace, podName, percent }) => [`${namespace}/${podName}`, `${percent} % taken`]);
  const [, ...rows] = tableLines(['resource', 'free'], [...resources, ...taken]);
  return rows.map((row) => cutLine(`  ${row}`, width));
}

/** VMs with a CPU mask own no CPUs, so the picture does not have them. */
function maskedLines({ masked }: NodeMap, width: number): string[] {
  return masked.map(({ name, mask }) => cutLine(`  ${name}: CPU mask ${mask}`, width));
}

function problemLines({ owners, masked }: NodeMap, width: number): Line[] {
  return [...owners, ...masked].flatMap(({ name, state }) => {
    if (state?.verdict !== 'degraded' && state?.verdict !== 'broken') return [];
    const mark = paint(state.verdict === 'broken' ? 'red' : 'yellow', '!');
    return [['  ', mark, ` ${cutLine(`${name}: ${state.text}`, Math.max(20, width - 4))}`]];
  });
}

function legendRows(owners: readonly CpuOwner[], width: number): Line[] {
  const columns = Math.min(width, 120);
  const rows: LinePart[][] = [];
  let used = columns;
  for (const { mark, label, style } of owners) {
    const text = cutLine(`${mark} ${label}`, Math.max(10, columns - 4));
    const isFirst = used + text.length + 3 > columns;
    if (isFirst) rows.push([]);
    rows.at(-1)!.push(isFirst ? '  ' : '   ', paint(style, text[0] ?? ''), text.slice(1));
    used = isFirst ? 2 + text.length : used + 3 + text.length;
  }
  return rows;
}

/** The marks of the CPUs; the first owner of a CPU counts. */
function ownerIndex(owners: readonly CpuOwner[]): Map<number, LinePart> {
  return new Map(
    owners.toReversed().flatMap(({ style, mark, cpus }) => [...cpus].map((cpu) => [cpu, paint(style, mark)])),
  );
}

export function nodeLines(node: NodeMap, { width }: Terminal): Line[] {
  const { name, host, cells, kubelet, free, freeCores, remarks } = node;
  const cellLabels = new Map(
    cells.filter(({ networks }) => networks.length > 0).map(({ id, networks }) => [id, networks.join(', ')]),
  );
  const owners = ownersOf(node).map((owner) =>
    owner.label === '' ? { ...owner, label: paddingLabel([node]) } : owner,
  );
  const head = [name, kubelet, ...remarks.map(({ text }) => text)].join('  ');
  return [
    [paint('bold', cutLine(head, width))],
    cutLine(`${free.size} of ${host.online.size} CPUs free, ${countText(freeCores, 'whole core')}`, width),
    '',
    ...drawCpuMap({ host, owners, cellLabels, width }),
    ...maskedLines(node, width),
    ...resourceRows(node, width),
    ...problemLines(node, width),
  ];
}
