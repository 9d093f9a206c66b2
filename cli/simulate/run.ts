import { hostsOf, type ReportedHost } from '../../diagnosis/hosts.ts';
import type { KubeClient } from '../../kube/client.ts';
import { countText, cpusText } from '../../model/amounts.ts';
import { CPUS_FROM_CLAIM } from '../../model/launcher/annotation.ts';
import { withoutThreads } from '../../model/launcher/cpus.ts';
import type { SelectingSpec } from '../../model/launcher/node-selection.ts';
import { groupBy } from '../../model/lists.ts';
import { type ClusterFlags, usingCluster } from '../support/cluster.ts';
import { EXIT, usageError } from '../support/exit-status.ts';
import { createProgress, type OutputFormat, print } from '../support/output.ts';
import { joinParts, type Line, paint, someNames, tableLines, wrap } from '../support/terminal.ts';
import { type Demand, demandOf, parseShape, readVmFile, requiredNetworks, type VmFile } from './demand.ts';
import { expandVm } from './instancetypes.ts';
import { runReplay } from './replay.ts';
import * as scenes from './scene.ts';
import { type DemandOutcome, type Simulation, simulate } from './simulate.ts';
import { runWithout } from './without.ts';

export interface SimulateFlags extends ClusterFlags, Partial<scenes.Invention> {
  readonly vm?: readonly string[];
  readonly filename?: readonly string[];
  readonly topologyManager: string;
  readonly kubelet: string;
  readonly replay?: string;
  readonly without?: string;
  readonly output?: OutputFormat;
}

const isShort = ({ requested, placed }: DemandOutcome) => requested !== undefined && placed < requested;

/** Prints how many of the requested VMs fit. @param defaultTopology of hypothetical nodes @throws CliError, KubeError */
export async function run(flags: SimulateFlags, defaultTopology: string): Promise<void> {
  const { vm: shapes = [], filename: paths = [], physnet = [], nodes, topology = defaultTopology } = flags;
  const hasVms = shapes.length + paths.length > 0;
  if (flags.replay !== undefined) {
    if (hasVms) throw usageError('--replay repeats one prediction: use it without --vm and -f');
    return runReplay(flags.replay, flags.output);
  }
  if (flags.without !== undefined) {
    if (hasVms) throw usageError('--without is about the VMs of these nodes: use it without --vm and -f');
    if (flags.nodes !== undefined) throw usageError('--without is about nodes of the cluster: use it without --nodes');
    return runWithout(flags.without, flags, flags.output);
  }
  if (!hasVms) {
    throw usageError('no VMs given: use --vm 4c2t:10, -f FILE or --without NODE; see plumbline simulate --help');
  }
  const [only] = (['topology', 'reserved', 'physnet'] as const).filter((flag) => (flags[flag]?.length ?? 0) > 0);
  if (flags.nodes === undefined && only !== undefined) {
    throw usageError(`--${only} is for hypothetical nodes: add --nodes, such as --nodes 100`);
  }
  // Reports errors in the command line or a file before it queries the cluster.
  for (const text of shapes) parseShape(text);
  const files = paths.map((path) => readVmFile(path, flags.namespace ?? 'default'));
  const invention = nodes === undefined ? undefined : { ...flags, physnet, nodes, topology };
  const { demands, targets, notes, isComplete } =
    invention === undefined
      ? await usingCluster(flags, async ({ client }) =>
          prepare(shapes, files, await scenes.readScene(client, Date.now()), client),
        )
      : await prepare(shapes, files, scenes.hypothetical(scenes.inventNodes(invention)));
  const progress = createProgress();
  const requested = demands.reduce((sum, { count }) => sum + (count ?? 0), 0);
  const update = (placed: number) =>
    progress.update(requested === 0 ? 0 : placed / requested, `${countText(placed, 'VM')} placed`);
  const result = simulate(targets.hosts, demands, update, targets.circumstances);
  progress.end();
  const allNotes = [
    ...(invention === undefined ? [] : [assumedText(invention)]),
    ...notes,
    ...threadNotes(result, demands, targets.hosts),
    ...targets.notes,
  ];
  const fits = isComplete && !result.vms.some(isShort);
  await print(flags.output, simulateData(result, fits, allNotes), {
    text: ({ width }, wide) => simulationLines(result, allNotes, width, wide),
  });
  process.exitCode = fits ? EXIT.ok : EXIT.findings;
}

function assumedText({ topology, reserved, topologyManager, kubelet, physnet }: scenes.Invention): string {
  const networks = physnet.length === 0 ? 'no networks' : `networks ${physnet.join(', ')}`;
  return (
    `assumed nodes: ${topology} (NUMA nodes x cores x threads), reserved ${reserved ?? 'the first core'}, ` +
    `topology manager ${topologyManager}, kubelet ${kubelet}, ${networks}`
  );
}

function threadNotes({ placements }: Simulation, demands: readonly Demand[], hosts: readonly ReportedHost[]): string[] {
  const single = hosts.filter(({ host }) => host.host.threadsPerCore === 1).map(({ name }) => name);
  return demands.flatMap(({ name, needs }) => {
    const at = (needs.guestThreads ?? 1) > 1 ? single.filter((node) => placements[node]?.includes(name)) : [];
    return at.length === 0 ? [] : [`${name}: ${withoutThreads(needs.guestThreads)}, as on ${someNames(at)}`];
  });
}

/** Output of `plumbline simulate -o json`: docs/schemas/simulate.json. */
function simulateData({ vms, cpus, smt: _, ...result }: Simulation, fits: boolean, notes: readonly string[]) {
  const { used, ...others } = cpus;
  return {
    fits,
    ...result,
    cpus: { ...others, assigned: used },
    vms: vms.map(({ requested = null, ...vm }) => ({ ...vm, requested })),
    notes,
  };
}

const paddingText = (padding: number, smt: boolean) =>
  smt ? `${padding} ${padding === 1 ? 'completes' : 'complete'} a core` : `${padding} for an even number`;

/** The result for people: what fits, what prevents more, and what is wasted. */
function simulationLines(result: Simulation, notes: readonly string[], width: number, wide = false): Line[] {
  const { vms, cpus, nodes, splitCores, placements } = result;
  const columns = Math.max(40, Math.min(width, 120));
  const rows = vms.map(({ name, cpus: each, padding, requested, placed }) => {
    const of = padding === 0 ? `${each}` : `${each} (${paddingText(padding, result.smt)})`;
    return [name, of, requested === undefined ? 'as many as fit' : `${requested}`, `${placed}`];
  });
  const [head = '', ...body] = tableLines(['VM', 'CPUs', 'asked', 'placed'], rows);
  const usable = cpus.total - cpus.reserved - cpus.before;
  const share = (part: number) =>
    `${cpusText(part)} (${usable === 0 ? 0 : ((100 * part) / usable).toFixed(1)} % of those that VMs can have)`;
  const before = cpus.before === 0 ? '' : `, ${cpus.before} already owned`;
  const byNode = Object.entries(placements).sort();
  const nodeRows = byNode.map(([node, names]): Line => [`  ${node}: `, ...joinParts(grouped(names), ', ')]);
  const remarks = notes.flatMap((note) => wrap(`(${note})`, columns)).map((line): Line => [paint('dim', line)]);
  return [
    `${countText(nodes, 'node')}, ${cpusText(cpus.total)}: ${cpus.reserved} reserved${before}`,
    '',
    [paint('bold', head)],
    ...body.map((line, i) => [paint(vms[i] && isShort(vms[i]) ? 'red' : undefined, line)]),
    ...vms.filter((vm) => Object.keys(vm.refusals).length > 0).flatMap((vm) => refusalLines(vm, columns)),
    '',
    [paint('bold', 'CPUs')],
    `  used       ${share(cpus.used)}`,
    `  padding    ${share(cpus.padding)} complete whole cores`,
    `  free       ${share(cpus.free)}`,
    `  stranded   ${share(cpus.stranded)}: free on nodes where none of these VMs fits`,
    ...(splitCores > 0 ? [`  ${countText(splitCores, 'core')} used in part`] : []),
    ...(wide ? ['', [paint('bold', 'Nodes')], ...nodeRows] : []),
    ...(remarks.length > 0 ? ['', ...remarks] : []),
  ];
}

function refusalLines({ name, refusals, requested, placed }: DemandOutcome, columns: number): string[] {
  const reasons = Object.entries(refusals)
    .sort(([, a], [, b]) => b - a)
    .map(([text, nodes]) => `${countText(nodes, 'node')}: ${text}`);
  const left = requested === undefined ? 'one more' : `${requested - placed} more`;
  return ['', ...wrap(`no room for ${left} ${name}: ${reasons.join('; ')}`, columns, '  ')];
}

function grouped(names: readonly string[]): string[] {
  const groups = groupBy(names, (name) => name);
  return [...groups].map(([name, { length }]) => (length === 1 ? name : `${length} ${name}`));
}

/** @param client undefined without a cluster @throws CliError, KubeError */
export async function prepare(
  shapes: readonly string[],
  files: readonly VmFile[],
  scene: scenes.Scene,
  client?: Pick<KubeClient, 'get'>,
) {
  const reported = hostsOf(scene.topologies);
  const threadsOf = (spec: SelectingSpec) =>
    scenes.candidatesOf(scene, reported, spec).map(({ host }) => host.host.threadsPerCore);
  const instancetypes = files.flatMap((file) => file.instancetypes);
  const notes: string[] = [];
  /** VMs whose place is not predicted. */
  const unknown: string[] = [];
  const demands: Demand[] = [];
  for (const { vms, nads } of files) {
    for (const declared of vms) {
      const vm = await expandVm(declared, instancetypes, client);
      const { dra, dedicatedCpuPlacement } = vm.vmi.spec.domain.cpu ?? {};
      if (dra !== undefined) {
        unknown.push(`${vm.name}: ${CPUS_FROM_CLAIM}`);
        continue;
      }
      if (dedicatedCpuPlacement !== true) {
        notes.push(`${vm.name} has no dedicated CPUs and is ignored`);
        continue;
      }
      const { networks, notes: networkNotes } = requiredNetworks(vm, [...nads, ...scene.nads]);
      notes.push(...networkNotes);
      demands.push(demandOf({ ...vm, networks }, threadsOf(vm.vmi.spec)));
    }
  }
  demands.push(...shapes.map((text) => demandOf(parseShape(text), threadsOf({}))));
  return {
    demands,
    targets: scenes.hostsForDemands(scene, reported, demands),
    notes: [...unknown, ...notes],
    isComplete: unknown.length === 0,
  };
}
