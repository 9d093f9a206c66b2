import { countText } from '../../model/amounts.ts';
import { type ClusterFlags, usingCluster } from '../support/cluster.ts';
import { EXIT } from '../support/exit-status.ts';
import { ageText, type OutputFormat, print } from '../support/output.ts';
import { cutLine, type Line, paint, someNames, type Terminal, tableLines } from '../support/terminal.ts';
import { showRepeatedly } from '../support/watch.ts';
import { type ClusterStatus, type ListedVm, readStatus } from './read.ts';

export interface StatusFlags extends ClusterFlags {
  readonly allNamespaces?: true;
  readonly watch?: number | true;
  readonly output?: OutputFormat;
}

const isQuiet = ({ notes, ...lists }: ClusterStatus) => Object.values(lists).every(({ length }) => length === 0);

/** Once or repeatedly. @param usualSeconds between views without a number in the flags @throws CliError, KubeError */
export function run(flags: StatusFlags, usualSeconds: number): Promise<void> {
  const { output, watch, allNamespaces } = flags;
  const seconds = typeof watch === 'number' ? watch : usualSeconds;
  return usingCluster(flags, (cluster) => {
    const namespace = allNamespaces ? undefined : cluster.namespace;
    return showRepeatedly(output, watch === undefined ? undefined : seconds, {
      read: () => readStatus(cluster, namespace, Date.now()),
      lines: (status, terminal, wide) => statusLines(status, namespace, terminal, wide),
      show: async (status) => {
        await print(output, status, {
          text: (terminal, wide) => statusLines(status, namespace, terminal, wide),
          name: () => namesOf(status, namespace),
        });
        process.exitCode = isQuiet(status) ? EXIT.ok : EXIT.findings;
      },
    });
  });
}

const listedVms = ({ waiting, notAsRequested, migrations }: ClusterStatus) => [
  ...waiting,
  ...notAsRequested,
  ...migrations,
];

function namesOf(status: ClusterStatus, namespace: string | undefined): string[] {
  return listedVms(status).map((vm) => (namespace === undefined ? `${vm.namespace}/${vm.name}` : `vm/${vm.name}`));
}

/** VMs with the same reason and message that are listed by name; `-o wide` lists all. */
const MAX_EQUAL = 10;

function folded(list: readonly ListedVm[], most: number) {
  const counts = new Map<string, number>();
  const listed = list.filter(({ reason, text }) => {
    const key = `${reason} ${text}`;
    const count = (counts.get(key) ?? 0) + 1;
    counts.set(key, count);
    return count <= most;
  });
  const many = [...counts].filter(([, count]) => count > most);
  return { listed, more: many.map(([key, count]) => `and ${count - most} more: ${key} (-o wide shows all)`) };
}

export function statusLines(
  status: ClusterStatus,
  namespace: string | undefined,
  { width }: Terminal,
  wide = false,
): Line[] {
  const {
    waiting,
    notAsRequested,
    migrations,
    notReady,
    silentAgents,
    deadDpus,
    restartedDpus,
    falseConditions,
    webhooksOff,
    mispredictions,
    notes,
  } = status;
  const columns = wide ? Number.POSITIVE_INFINITY : width;
  const where = namespace === undefined ? 'in any namespace' : `in namespace ${namespace} (-A: all)`;
  const section = (
    title: string,
    head: readonly string[],
    rows: readonly (readonly string[])[],
    more: string[] = [],
  ) => {
    if (rows.length === 0) return [];
    const lines = [...tableLines(head, rows), ...more].map((line) => cutLine(`  ${line}`, columns));
    return [[paint('bold', title)], ...lines, ''];
  };
  const vms = (title: string, list: readonly ListedVm[]) => {
    const { listed, more } = folded(list, wide ? Number.POSITIVE_INFINITY : MAX_EQUAL);
    const rows = listed.map((vm) => [
      namespace === undefined ? `${vm.namespace}/${vm.name}` : vm.name,
      vm.ageSeconds === undefined ? '' : ageText(vm.ageSeconds),
      vm.node ?? '-',
      vm.reason,
      vm.text,
    ]);
    return section(title, ['VM', 'SINCE', 'NODE', 'REASON', 'MESSAGE'], rows, more);
  };
  const faults = faultTexts(status);
  const lines: Line[] = [
    ...(faults.length === 0 ? [] : [[paint('red', cutLine(`Not working: ${faults.join('; ')}`, columns))], '']),
    ...vms(countText(waiting.length, 'VM does not run', 'VMs do not run'), waiting),
    ...vms(
      countText(notAsRequested.length, 'VM runs, but not as requested', 'VMs run, but not as requested'),
      notAsRequested,
    ),
    ...vms(
      countText(migrations.length, 'VM runs, and its migration waits', 'VMs run, and their migrations wait'),
      migrations,
    ),
    ...section(
      countText(notReady.length, 'Deployment is not ready', 'Deployments are not ready'),
      ['DEPLOYMENT', 'MESSAGE'],
      notReady.map(({ deployment, text }) => [deployment, text]),
    ),
    ...section(
      'The webhook does not change new VMs',
      ['WEBHOOK', 'MESSAGE'],
      webhooksOff.map(({ webhook, text }) => [webhook, text]),
    ),
    ...section(
      countText(silentAgents.length, 'agent is silent', 'agents are silent'),
      ['NODE', 'LAST RENEWAL'],
      silentAgents.map(({ node, silentSeconds }) => [node, `${ageText(silentSeconds)} ago`]),
    ),
    ...section(
      countText(deadDpus.length, 'DPU is dead', 'DPUs are dead'),
      ['NODE', 'MESSAGE'],
      deadDpus.map(({ node, text }) => [node, text]),
    ),
    ...section(
      countText(restartedDpus.length, 'DPU has restarted', 'DPUs have restarted'),
      ['NODE', 'NETWORKS LOST SINCE'],
      restartedDpus.map(({ node, text }) => [node, text]),
    ),
    ...section(
      countText(falseConditions.length, 'condition of a node is False', 'conditions of nodes are False'),
      ['NODE', 'CONDITION', 'MESSAGE'],
      nodesByCondition(falseConditions).map(({ nodes, condition, text }) => [someNames(nodes), condition, text]),
    ),
    ...section(
      countText(mispredictions.length, 'prediction was wrong', 'predictions were wrong'),
      ['POD', 'MESSAGE'],
      mispredictions.map(({ pod, text }) => [pod, text]),
    ),
  ];
  const [first] = listedVms(status);
  const quiet =
    first === undefined
      ? [`no VM is waiting ${where}`]
      : [`plumbline explain vm/${first.name} -n ${first.namespace} shows what would help`];
  return [...lines, ...quiet, ...notes.map((note) => [paint('dim', `(${note})`)])];
}

/** The parts that do not work, most of all first: what is wrong with VMs often follows from them. */
function faultTexts(status: ClusterStatus): string[] {
  const { webhooksOff, notReady, silentAgents, deadDpus, restartedDpus, falseConditions } = status;
  return [
    ...webhooksOff.map(({ webhook, text }) => `${webhook} (${text})`),
    ...notReady.map(({ deployment, text }) => `${deployment} (${text})`),
    ...(silentAgents.length === 0 ? [] : [`the agent on ${someNames(silentAgents.map(({ node }) => node))} (silent)`]),
    ...deadDpus.map(({ node, text }) => `the DPU of ${node} (${text})`),
    ...restartedDpus.map(({ node, text }) => `networks on ${node} (lost since ${text})`),
    ...nodesByCondition(falseConditions).map(
      ({ nodes, condition, text }) => `${someNames(nodes)} (${condition} is False: ${text})`,
    ),
  ];
}

function nodesByCondition(conditions: ClusterStatus['falseConditions']) {
  const groups = new Map<string, { readonly nodes: string[]; readonly condition: string; readonly text: string }>();
  for (const { node, condition, text } of conditions) {
    const key = `${condition} ${text}`;
    const group = groups.get(key) ?? { nodes: [], condition, text };
    group.nodes.push(node);
    groups.set(key, group);
  }
  return [...groups.values()];
}
