import type { NodeTopology } from '../../kube/node-topology.ts';
import { type NetworkAttachmentDefinition, networkAttachmentDefinition } from '../../kube/resources.ts';
import { deadDpuCondition, explainedNode } from '../explain/objects.ts';
import { type ClusterFlags, usingCluster } from '../support/cluster.ts';
import { EXIT, usageError } from '../support/exit-status.ts';
import { hostsOf, type ReportedHost } from '../support/hosts.ts';
import { assertReported, readIfAllowed, readTopologies } from '../support/lists.ts';
import { createProgress, type OutputFormat, print } from '../support/output.ts';
import { countText, joinParts, type Line, paint, tableLines, wrap } from '../support/terminal.ts';
import { TOPOLOGY } from './command.ts';
import { type Demand, demandOf, parseShape } from './demand.ts';
import { networksOf, readVmFile, type VmFile } from './file.ts';
import { type Invention, inventNodes } from './invent.ts';
import { runReplay } from './replay.ts';
import { type DemandOutcome, type Simulation, simulate } from './simulate.ts';

export interface SimulateFlags extends ClusterFlags, Partial<Invention> {
  readonly vm: readonly string[];
  readonly filename: readonly string[];
  readonly physnet: readonly string[];
  readonly topologyManager: string;
  readonly kubelet: string;
  readonly replay?: string;
  readonly output?: OutputFormat;
}

/** The nodes to place VMs on. */
interface Scene {
  readonly topologies: readonly NodeTopology[];
  readonly nads: readonly NetworkAttachmentDefinition[];
  /** Nodes that are cordoned or have a dead DPU: no new pods start there. */
  readonly closed: ReadonlySet<string>;
}

/** Prints how many of the requested VMs fit. @throws CliError, KubeError */
export async function run(flags: SimulateFlags): Promise<void> {
  const hasVms = flags.vm.length + flags.filename.length > 0;
  if (flags.replay !== undefined) {
    if (hasVms) throw usageError('--replay repeats one prediction: use it without --vm and -f');
    return runReplay(flags.replay, flags.output);
  }
  if (!hasVms) {
    throw usageError('no VMs given: use --vm 4c2t:10 or -f FILE; see plumbline simulate --help');
  }
  const [only] = (['topology', 'reserved', 'physnet'] as const).filter((flag) => (flags[flag]?.length ?? 0) > 0);
  if (flags.nodes === undefined && only !== undefined) {
    throw usageError(`--${only} is for hypothetical nodes: add --nodes, such as --nodes 100`);
  }
  // Reports errors in the command line or a file before it queries the cluster.
  for (const text of flags.vm) parseShape(text);
  const files = flags.filename.map((path) => readVmFile(path, flags.namespace ?? 'default'));
  const { nodes, topology = TOPOLOGY } = flags;
  const scene: Scene =
    nodes === undefined
      ? await readScene(flags)
      : { topologies: inventNodes({ ...flags, nodes, topology }), nads: [], closed: new Set() };
  const { hosts, unusable } = hostsOf(scene.topologies);
  const open = hosts.filter(({ name }) => !scene.closed.has(name));
  const { demands, notes } = demandsOf(flags.vm, files, scene, open);
  const progress = createProgress();
  const asked = demands.reduce((sum, { count }) => sum + (count ?? 0), 0);
  const result = simulate(open, demands, (placed) =>
    progress.update(asked === 0 ? 0 : placed / asked, `${countText(placed, 'VM')} placed`),
  );
  progress.end();
  const said = [
    ...notes,
    ...(scene.closed.size > 0
      ? [`excluded because they are cordoned or their DPU is dead: ${[...scene.closed].join(', ')}`]
      : []),
    ...[...unusable].map(([name, why]) => `${name} is excluded: ${why}`),
  ];
  const fits = !result.vms.some(isShort);
  await print(flags.output, simulateData(result, fits, said), {
    text: ({ width }) => simulationLines(result, said, width),
    wide: ({ width }) => simulationLines(result, said, width, true),
  });
  process.exitCode = fits ? EXIT.ok : EXIT.findings;
}

function readScene(flags: SimulateFlags): Promise<Scene> {
  return usingCluster(flags, async ({ client }) => {
    const path = '/apis/k8s.cni.cncf.io/v1/network-attachment-definitions';
    const [topologies, nodes, nads] = await Promise.all([
      readTopologies(client),
      readIfAllowed(client, '/api/v1/nodes', explainedNode),
      flags.filename.length === 0 ? [] : readIfAllowed(client, path, networkAttachmentDefinition),
    ]);
    assertReported(topologies);
    const closed = (nodes ?? []).filter(
      (node) => node.spec?.unschedulable === true || deadDpuCondition(node) !== undefined,
    );
    return { topologies, nads: nads ?? [], closed: new Set(closed.map(({ metadata }) => metadata.name ?? '')) };
  });
}

function demandsOf(shapes: readonly string[], files: readonly VmFile[], scene: Scene, hosts: readonly ReportedHost[]) {
  const threadsPerCore = hosts.map(({ host }) => host.host.threadsPerCore);
  const notes: string[] = [];
  const demands: Demand[] = [];
  for (const { vms, nads } of files) {
    for (const vm of vms) {
      if (vm.vmi.spec.domain.cpu?.dedicatedCpuPlacement !== true) {
        notes.push(`${vm.name} has no dedicated CPUs and is ignored`);
        continue;
      }
      const { networks, notes: said } = networksOf(vm, [...nads, ...scene.nads]);
      notes.push(...said);
      demands.push(demandOf({ ...vm, networks }, threadsPerCore));
    }
  }
  demands.push(...shapes.map((text) => demandOf(parseShape(text), threadsPerCore)));
  return { demands, notes };
}

/** Output of `plumbline simulate -o json`: docs/schemas/simulate.json. */
export function simulateData({ vms, ...result }: Simulation, fits: boolean, notes: readonly string[]) {
  return { fits, ...result, vms: vms.map((vm) => ({ ...vm, asked: vm.asked ?? null })), notes };
}

/** The result for people: what fits, what prevents more, and what is wasted. */
export function simulationLines(result: Simulation, notes: readonly string[], width: number, wide = false): Line[] {
  const { vms, cpus, nodes, splitCores, placements } = result;
  const columns = Math.max(40, Math.min(width, 120));
  const rows = vms.map(({ name, cpus: each, padding, asked, placed }) => {
    const of = padding === 0 ? `${each}` : `${each} (${padding} ${padding === 1 ? 'completes' : 'complete'} a core)`;
    return [name, of, asked === undefined ? 'as many as fit' : `${asked}`, `${placed}`];
  });
  const [head = '', ...body] = tableLines(['VM', 'CPUs', 'asked', 'placed'], rows);
  const usable = cpus.total - cpus.reserved - cpus.before;
  const share = (part: number) =>
    `${part} CPUs (${usable === 0 ? 0 : ((100 * part) / usable).toFixed(1)} % of those that VMs can have)`;
  const before = cpus.before === 0 ? '' : `, ${cpus.before} already owned`;
  return [
    `${countText(nodes, 'node')}, ${cpus.total} CPUs: ${cpus.reserved} reserved${before}`,
    '',
    [paint('bold', head)],
    ...body.map((line, i) => [paint(vms[i] && isShort(vms[i]) ? 'red' : undefined, line)]),
    ...vms.filter((vm) => Object.keys(vm.refusals).length > 0).flatMap((vm) => refusalLines(vm, columns)),
    '',
    [paint('bold', 'CPUs')],
    `  used       ${share(cpus.given)}`,
    `  padding    ${share(cpus.padding)} complete whole cores`,
    `  free       ${share(cpus.free)}`,
    `  stranded   ${share(cpus.stranded)}: free on nodes where none of these VMs fits`,
    ...(splitCores > 0 ? [`  ${countText(splitCores, 'core')} used in part`] : []),
    ...(wide
      ? [
          '',
          [paint('bold', 'Nodes')],
          ...Object.entries(placements)
            .sort()
            .map(([node, names]) => [`  ${node}: `, ...joinParts(grouped(names), ', ')]),
        ]
      : []),
    ...(notes.length > 0
      ? ['', ...notes.flatMap((note) => wrap(`(${note})`, columns)).map((line) => [paint('dim', line)])]
      : []),
  ];
}

export const isShort = ({ asked, placed }: DemandOutcome) => asked !== undefined && placed < asked;

function refusalLines({ name, refusals, asked, placed }: DemandOutcome, columns: number): string[] {
  const reasons = Object.entries(refusals)
    .sort(([, a], [, b]) => b - a)
    .map(([text, nodes]) => `${countText(nodes, 'node')}: ${text}`);
  const left = asked === undefined ? 'one more' : `${asked - placed} more`;
  return ['', ...wrap(`no room for ${left} ${name}: ${reasons.join('; ')}`, columns, '  ')];
}

function grouped(names: readonly string[]): string[] {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts].map(([name, number]) => (number === 1 ? name : `${number} ${name}`));
}
