import type { DrainedVm } from '../../diagnosis/drain.ts';
import { remedyLines } from '../../diagnosis/remedies.ts';
import { countText, cpuListText } from '../../model/amounts.ts';
import { type PlannedDrain, readDrain } from '../drain/read.ts';
import { type ClusterFlags, usingCluster } from '../support/cluster.ts';
import { EXIT, usageError } from '../support/exit-status.ts';
import { type OutputFormat, print } from '../support/output.ts';
import { type Line, paint, remedyParagraph, tableLines, wrap } from '../support/terminal.ts';

/** Prints what a drain of these nodes would do with their VMs. @param list names, separated by commas @throws CliError, KubeError */
export async function runWithout(list: string, flags: ClusterFlags, output: OutputFormat | undefined): Promise<void> {
  const names = [...new Set(list.split(',').filter((name) => name !== ''))];
  if (names.length === 0) throw usageError('--without needs names of nodes, separated by commas');
  const drain = await usingCluster(flags, ({ client }) => readDrain(client, names, Date.now()));
  const data = drainData(drain);
  await print(output, data, { text: ({ width }) => drainLines(drain, width) });
  process.exitCode = data.allMigrate ? EXIT.ok : EXIT.findings;
}

const migrates = ({ outcome }: DrainedVm) => outcome === 'migrates';

/** Output of `plumbline simulate --without NODE -o json`: docs/schemas/simulate-without.json. */
export function drainData({ vms, nodes, orderMatters, notes }: PlannedDrain) {
  return {
    nodes,
    allMigrate: vms.every(migrates),
    orderMatters,
    vms: vms.map(({ cpus, place, ...vm }) => ({
      ...vm,
      cpus: cpus.toArray(),
      place: place === undefined ? null : { ...place, cpus: place.cpus.toArray() },
    })),
    notes,
  };
}

const ORDER = 'another order leaves VMs without a place: cordon, and migrate them in this order, before the drain';

const OUTCOMES: Readonly<Record<Exclude<DrainedVm['outcome'], 'migrates'>, string>> = {
  restarts: 'restarts elsewhere, without a migration',
  stops: 'stops',
  blocks: 'blocks the drain',
  unknown: 'unknown',
};

/** For people: where the VMs go, which cannot, why, and what would help. */
export function drainLines({ nodes, vms, orderMatters, notes }: PlannedDrain, width: number): Line[] {
  const columns = Math.max(40, Math.min(width, 120));
  const going = vms.filter(migrates);
  const others = vms.filter((vm) => !migrates(vm));
  const what = nodes.join(', ');
  const head =
    vms.length === 0
      ? `no VM runs on ${what}`
      : `without ${what}: ${going.length} of ${countText(vms.length, 'VM')} would migrate`;
  const [columnNames = '', ...rows] = tableLines(['VM', 'FROM', 'TO', 'CPUS', 'NUMA'], going.map(rowOf));
  return [
    [paint(others.length === 0 ? 'green' : 'yellow', head)],
    ...(going.length === 0 ? [] : ['', [paint('bold', columnNames)], ...rows]),
    ...(orderMatters ? ['', ...wrap(ORDER, columns)] : []),
    ...others.flatMap((vm) => ['', ...otherLines(vm, columns)]),
    ...(notes.length === 0 ? [] : ['', ...notes.flatMap((note) => wrap(`(${note})`, columns))]),
  ];
}

function rowOf({ namespace, name, node, place }: DrainedVm): string[] {
  const { node: to = '', cpus, numaNodes = [], equal = 1 } = place ?? {};
  const others = equal > 1 ? `, or ${countText(equal - 1, 'other')}` : '';
  const cpuText = cpus?.isEmpty === false ? `${cpus}` : 'shared';
  return [`${namespace}/${name}`, node, to + others, cpuText, numaNodes.join(',')];
}

function otherLines(vm: DrainedVm, columns: number): Line[] {
  const { namespace, name, outcome, place, text, remedies } = vm;
  const how = OUTCOMES[outcome as keyof typeof OUTCOMES];
  const where =
    place === undefined ? '' : ` (on ${place.node}${place.cpus.isEmpty ? '' : `, ${cpuListText(place.cpus)}`})`;
  return [
    ...wrap(`${namespace}/${name} ${how}${where}: ${text}`, columns),
    ...remedies.map(remedyLines).flatMap((help) => remedyParagraph(help, columns, '  - ')),
  ];
}
