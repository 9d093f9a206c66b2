import { countText } from '../../model/amounts.ts';
import { groupBy } from '../../model/lists.ts';
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
  const seconds = watch === true ? usualSeconds : watch;
  return usingCluster(flags, (cluster) => {
    const namespace = allNamespaces ? undefined : cluster.namespace;
    return showRepeatedly(output, seconds, {
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

const listedVms = ({ waiting, notAsRequested, migrations }: ClusterStatus) =>
  [waiting, notAsRequested, migrations].flat();

function namesOf(status: ClusterStatus, namespace: string | undefined): string[] {
  return listedVms(status).map((vm) => (namespace === undefined ? `${vm.namespace}/${vm.name}` : `vm/${vm.name}`));
}

/** VMs with the same reason and message that are listed by name; `-o wide` lists all. */
const MAX_EQUAL = 10;

function folded(list: readonly ListedVm[], most: number) {
  const groups = groupBy(list, ({ reason, text }) => `${reason} ${text}`);
  const hidden = new Set([...groups.values()].flatMap((vms) => vms.slice(most)));
  const more = [...groups].filter(([, vms]) => vms.length > most);
  return {
    listed: list.filter((vm) => !hidden.has(vm)),
    more: more.map(([key, vms]) => `and ${vms.length - most} more: ${key} (-o wide shows all)`),
  };
}

export function statusLines(
  status: ClusterStatus,
  namespace: string | undefined,
  { width }: Terminal,
  wide = false,
): Line[] {
  const columns = wide ? Number.POSITIVE_INFINITY : width;
  const section = (title: string, head: string, rows: readonly (readonly string[])[], more: string[] = []): Line[] => {
    if (rows.length === 0) return [];
    const lines = [...tableLines(head.split('|'), rows), ...more].map((line) => cutLine(`  ${line}`, columns));
    return [[paint('bold', title)], ...lines, ''];
  };
  const vms = (list: readonly ListedVm[], singular: string, plural: string) => {
    const { listed, more } = folded(list, wide ? Number.POSITIVE_INFINITY : MAX_EQUAL);
    const rows = listed.map((vm) => [
      namespace === undefined ? `${vm.namespace}/${vm.name}` : vm.name,
      vm.ageSeconds === undefined ? '' : ageText(vm.ageSeconds),
      vm.node ?? '-',
      vm.reason,
      vm.text,
    ]);
    return section(countText(list.length, singular, plural), 'VM|SINCE|NODE|REASON|MESSAGE', rows, more);
  };
  /** A row with all fields of each. */
  const parts = (list: readonly Readonly<Record<string, string>>[], head: string, singular: string, plural: string) =>
    section(countText(list.length, singular, plural), head, list.map(Object.values));
  const { waiting, notAsRequested, migrations, silentAgents, falseConditions, webhooksOff } = status;
  const faults = faultTexts(status);
  const agents = silentAgents.map(({ node, silentSeconds }) => [node, `${ageText(silentSeconds)} ago`]);
  const conditions = nodesByCondition(falseConditions).map(({ nodes, ...rest }) => ({
    nodes: someNames(nodes),
    ...rest,
  }));
  const [first] = listedVms(status);
  const where = namespace === undefined ? 'in any namespace' : `in namespace ${namespace} (-A: all)`;
  return [
    ...(faults.length === 0 ? [] : [[paint('red', cutLine(`Not working: ${faults.join('; ')}`, columns))], '']),
    ...vms(waiting, 'VM does not run', 'VMs do not run'),
    ...vms(notAsRequested, 'VM runs, but not as requested', 'VMs run, but not as requested'),
    ...vms(migrations, 'VM runs, and its migration waits', 'VMs run, and their migrations wait'),
    ...parts(status.notReady, 'DEPLOYMENT|MESSAGE', 'Deployment is not ready', 'Deployments are not ready'),
    ...section('The webhook does not change new VMs', 'WEBHOOK|MESSAGE', webhooksOff.map(Object.values)),
    ...section(countText(agents.length, 'agent is silent', 'agents are silent'), 'NODE|LAST RENEWAL', agents),
    ...parts(status.deadDpus, 'NODE|MESSAGE', 'DPU is dead', 'DPUs are dead'),
    ...parts(status.restartedDpus, 'NODE|NETWORKS LOST SINCE', 'DPU has restarted', 'DPUs have restarted'),
    ...section(
      countText(falseConditions.length, 'condition of a node is False', 'conditions of nodes are False'),
      'NODE|CONDITION|MESSAGE',
      conditions.map(Object.values),
    ),
    ...parts(status.mispredictions, 'POD|MESSAGE', 'prediction was wrong', 'predictions were wrong'),
    first === undefined
      ? `no VM is waiting ${where}`
      : `plumbline explain vm/${first.name} -n ${first.namespace} shows what would help`,
    ...status.notes.map((note) => [paint('dim', `(${note})`)]),
  ];
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
  return [...groupBy(conditions, ({ condition, text }) => `${condition} ${text}`).values()].map((group) => {
    const { condition, text } = group[0]!;
    return { nodes: group.map(({ node }) => node), condition, text };
  });
}
