import { Option } from 'commander';
import { Subcommand, wholeNumber } from '../support/command.ts';
import type { SimulateFlags } from './run.ts';

const EXAMPLES = `
A shape is the guest's cores and threads of each, then the networks that it must be near, then how many VMs; without a number, as
many as fit: 8c, 4c2t, 4c2t:10, 4c2t@physnet0:10, 8c@physnet0,tunnel. Each VM has dedicated CPUs, an isolated emulator
thread and the full-pcpus-only annotation. On a cluster, nodes count as in explain: selectors, affinity, taints, agents and pods in
flight; an instancetype and a preference come from the files, else from the cluster. Memory other than huge pages does not count.

Examples:
  plumbline simulate --vm 4c2t:20                                 # do 20 more fit on this cluster?
  plumbline simulate -f vms.yaml                                  # these VMs
  plumbline simulate --vm 4c2t --nodes 100 --topology 2x16x2      # how many fit on 100 such nodes?
  plumbline simulate --without worker-1                           # what would a drain of this node do?
  plumbline simulate --vm 4c2t@physnet0:50 --vm 2c2t --nodes 10 --topology 2x16x2 --physnet physnet0=0 -o json

Exit status: 0 if all requested VMs fit, 1 if some do not. With --without: 0 if every VM would migrate, 1 if not. With --replay: 0 if this version predicts what the kubelet did, 1 if not.`;

const DEFAULT_TOPOLOGY = '2x16x2';

const gather = (value: string, before: readonly string[] = []) => [...before, value];

const POLICIES = ['none', 'best-effort', 'restricted', 'single-numa-node'];

export const createCommand = () =>
  new Subcommand(
    'simulate',
    'Place VMs on this cluster, or on hypothetical nodes, as the extender and kubelets would: how many fit, and what is wasted.',
    EXAMPLES,
  )
    .option('--vm <shape>', 'VMs of this shape, such as 4c2t@physnet0:10; may be repeated', gather)
    .option(
      '-f, --filename <file>',
      'VMs of this YAML file, and their instancetypes; - for standard input; may be repeated',
      gather,
    )
    .option(
      '--nodes <number>',
      'number of hypothetical nodes to use instead of the cluster',
      wholeNumber(1, 999_999, 'a whole number above 0'),
    )
    .option(
      '--topology <SxCxT>',
      `topology of each hypothetical node: NUMA nodes x cores of each x threads; default: ${DEFAULT_TOPOLOGY}`,
    )
    .option('--physnet <name=cells>', 'a physnet of the hypothetical nodes and its NUMA nodes; may be repeated', gather)
    .option('--reserved <cpus>', 'reserved CPUs of the hypothetical nodes; default: the first core')
    .addOption(
      new Option('--topology-manager <policy>', 'policy of the kubelets of hypothetical nodes')
        .choices(POLICIES)
        .default('best-effort'),
    )
    .option('--kubelet <version>', 'kubelet version of the hypothetical nodes', 'v1.36.2')
    .option(
      '--without <nodes>',
      'what a drain of these nodes, separated by commas, would do with each VM there: where it migrates, or why it cannot',
    )
    .option(
      '--replay <file>',
      'repeat a prediction from the extender’s log, a line with "replay"; - for standard input',
    )
    .withCluster()
    .withNamespace()
    .withOutput('json', 'yaml', 'wide')
    .action(async (flags: SimulateFlags) => (await import('./run.ts')).run(flags, DEFAULT_TOPOLOGY));
