import type { NodeTopology } from '../../kube/node-topology.ts';
import { type NetworkAttachmentDefinition, networkAttachmentDefinition } from '../../kube/resources.ts';
import { explainedNode, isDpuDead } from '../explain/objects.ts';
import { type ClusterFlags, usingCluster } from '../support/cluster.ts';
import { EXIT, usageError } from '../support/exit-status.ts';
import { hostsOf, type ReportedHost } from '../support/hosts.ts';
import { assertReported, readIfAllowed, readTopologies } from '../support/lists.ts';
import { type OutputFormat, print } from '../support/output.ts';
import { createProgress } from '../support/progress.ts';
import { countText } from '../support/terminal.ts';
import { TOPOLOGY } from './command.ts';
import { type Demand, demandOf } from './demand.ts';
import { networksOf, readVmFile, type VmFile } from './file.ts';
import { type Invention, inventNodes } from './invent.ts';
import { isShort, simulationLines } from './lines.ts';
import { simulateData } from './output.ts';
import { runReplay } from './replay.ts';
import { parseShape } from './shape.ts';
import { simulate } from './simulate.ts';

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
  const scene =
    flags.nodes === undefined ? await readScene(flags) : inventScene(flags, flags.nodes, flags.topology ?? TOPOLOGY);
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

function inventScene(flags: SimulateFlags, nodes: number, topology: string): Scene {
  return { topologies: inventNodes({ ...flags, nodes, topology }), nads: [], closed: new Set() };
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
    const closed = (nodes ?? []).filter((node) => node.spec?.unschedulable === true || isDpuDead(node));
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
      demands.push(demandOf({ name: vm.name, count: vm.count, vmi: vm.vmi, networks, threadsPerCore }));
    }
  }
  demands.push(...shapes.map((text) => demandOf({ ...parseShape(text), threadsPerCore })));
  return { demands, notes };
}
