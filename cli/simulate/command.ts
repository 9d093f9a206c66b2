import { Command, InvalidArgumentError, Option } from 'commander';
import type { NodeTopology } from '../../kube/node-topology.ts';
import { type NetworkAttachmentDefinition, networkAttachmentDefinition } from '../../kube/resources.ts';
import { explainedNode, isDpuDead } from '../explain/objects.ts';
import { type ClusterFlags, usingCluster, withCluster, withNamespace } from '../support/cluster.ts';
import { EXIT, usageError } from '../support/exit-status.ts';
import { hostsOf, type ReportedHost } from '../support/hosts.ts';
import { assertReported, readIfAllowed, readTopologies } from '../support/lists.ts';
import { type OutputFormat, print, withOutput } from '../support/output.ts';
import { createProgress } from '../support/progress.ts';
import { terminalOf } from '../support/terminal.ts';
import { type Demand, demandOf } from './demand.ts';
import { networksOf, readVmFile, type VmFile } from './file.ts';
import { type Invention, inventNodes } from './invent.ts';
import { isShort, simulationLines } from './lines.ts';
import { simulateData } from './output.ts';
import { parseShape } from './shape.ts';
import { simulate } from './simulate.ts';

interface SimulateFlags extends ClusterFlags, Partial<Invention> {
  readonly vm: readonly string[];
  readonly filename: readonly string[];
  readonly physnet: readonly string[];
  readonly topologyManager: string;
  readonly kubelet: string;
  readonly output?: OutputFormat;
}

/** The nodes to place VMs on. */
interface Scene {
  readonly topologies: readonly NodeTopology[];
  readonly nads: readonly NetworkAttachmentDefinition[];
  /** Nodes that are cordoned or have a dead DPU: no new pods start there. */
  readonly closed: ReadonlySet<string>;
}

const EXAMPLES = `
A shape is the guest's cores and threads of each, then the networks that it must be near, then how many VMs; without a number, as
many as fit: 8c, 4c2t, 4c2t:10, 4c2t@physnet0:10, 8c@physnet0,tunnel. Each VM has dedicated CPUs, an isolated emulator
thread and the full-pcpus-only annotation. Memory and devices do not count.

Examples:
  plumbline simulate --vm 4c2t:20                                 # do 20 more fit on this cluster?
  plumbline simulate -f vms.yaml                                  # these VMs
  plumbline simulate --vm 4c2t --nodes 100 --topology 2x16x2      # how many fit on 100 such nodes?
  plumbline simulate --vm 4c2t@physnet0:50 --vm 2c2t --nodes 10 --topology 2x16x2 --physnet physnet0=0 -o json

Exit status: 0 if all requested VMs fit, 1 if some do not.`;

/** Options of hypothetical nodes. */
const TOPOLOGY = '2x16x2';

const gather = (value: string, before: readonly string[]) => [...before, value];

/** `plumbline simulate` */
export function simulateCommand(): Command {
  const policies = ['none', 'best-effort', 'restricted', 'single-numa-node'];
  const policy = new Option('--topology-manager <policy>', 'policy of the kubelets of hypothetical nodes').choices(
    policies,
  );
  const command = new Command('simulate')
    .description(
      'Place VMs on this cluster, or on hypothetical nodes, as the extender and kubelets would: how many fit, and what is wasted.',
    )
    .option('--vm <shape>', 'VMs of this shape, such as 4c2t@physnet0:10; may be repeated', gather, [])
    .option('-f, --filename <file>', 'VMs of this YAML file; - for standard input; may be repeated', gather, [])
    .option('--nodes <number>', 'number of hypothetical nodes to use instead of the cluster', wholeNumber)
    .option(
      '--topology <SxCxT>',
      `topology of each hypothetical node: NUMA nodes x cores of each x threads; default: ${TOPOLOGY}`,
    )
    .option(
      '--physnet <name=cells>',
      'a physnet of the hypothetical nodes and its NUMA nodes; may be repeated',
      gather,
      [],
    )
    .option('--reserved <cpus>', 'reserved CPUs of the hypothetical nodes; default: the first core')
    .addOption(policy.default('best-effort'))
    .option('--kubelet <version>', 'kubelet version of the hypothetical nodes', 'v1.36.2')
    .addHelpText('after', EXAMPLES)
    .action(run);
  return withOutput(withNamespace(withCluster(command)), ['json', 'yaml', 'wide']);
}

function wholeNumber(text: string): number {
  if (!/^\d{1,6}$/.test(text)) throw new InvalidArgumentError('expected a whole number');
  return Number(text);
}

async function run(flags: SimulateFlags): Promise<void> {
  if (flags.vm.length + flags.filename.length === 0) {
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
    progress.update(asked === 0 ? 0 : placed / asked, `${placed} VMs placed`),
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
    text: () => simulationLines(result, said, terminalOf(process.stdout)),
    wide: () => simulationLines(result, said, terminalOf(process.stdout), true),
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
