import { countText } from '../../model/amounts.ts';
import { groupBy } from '../../model/lists.ts';
import { type ClusterFlags, usingCluster } from '../support/cluster.ts';
import { EXIT } from '../support/exit-status.ts';
import { type OutputFormat, print } from '../support/output.ts';
import { cutLine, type Line, paint, someNames, wrap } from '../support/terminal.ts';
import { isNotApplied, readVerifyFacts, type Verification, type VmFinding, verifyMasks } from './survey.ts';

export interface VerifyFlags extends ClusterFlags {
  readonly allNamespaces?: true;
  readonly output?: OutputFormat;
}

const isBad = (vm: VmFinding) => vm.nodes.length === 0 || isNotApplied(vm) || vm.running?.verdict === 'broken';

/** Prints which nodes can host each VM with a CPU mask. @throws CliError, KubeError */
export function run(flags: VerifyFlags): Promise<void> {
  return usingCluster(flags, async ({ client }) => {
    const namespace = flags.allNamespaces ? undefined : flags.namespace;
    const verification = verifyMasks(await readVerifyFacts(client, namespace, Date.now()));
    await print(flags.output, verification, {
      text: ({ width }, wide) => verificationLines(verification, width, wide),
      name: () => verification.vms.flatMap((vm) => (isBad(vm) ? [`${vm.kind.toLowerCase()}/${vm.name}`] : [])),
    });
    process.exitCode = verification.vms.some(isBad) ? EXIT.findings : EXIT.ok;
  });
}

const MAX_NODES = 5;

const indented = (text: string, width: number): string[] =>
  wrap(text.split(' '), Math.max(20, width - 6), '  ').map((line) => `      ${line}`);

export function verificationLines(verification: Verification, width: number, everyNode = false): Line[] {
  const { vms, withoutNode, notApplied, nodes, reporting } = verification;
  if (vms.length === 0) return ['no VM has a CPU mask: nothing to check'];
  const most = everyNode ? Number.POSITIVE_INFINITY : MAX_NODES;
  const lines = vms.flatMap((vm): Line[] => {
    const what = `${vm.namespace}/${vm.name}  ${vm.mask}: ${hostsText(vm, most)}`;
    const mark = isBad(vm) ? paint('red', '! ') : paint('green', 'ok');
    const columns = Math.min(width, 120);
    const [first, ...more] = everyNode ? wrap(what.split(' '), columns - 4, '', '    ') : [cutLine(what, width - 4)];
    return [[mark, `  ${first}`], ...more, ...details(vm, most).flatMap((text) => indented(text, columns))];
  });
  const silent = nodes - reporting;
  return [
    ...lines,
    '',
    `${countText(vms.length, 'VM')} with a CPU mask on ${countText(nodes, 'node')}${silent > 0 ? ` (${countText(silent, 'does not report', 'do not report')})` : ''}: ${withoutNode === 0 ? 'every mask fits some node' : countText(withoutNode, 'has no node', 'have no node')}${notApplied === 0 ? '' : `; ${countText(notApplied, 'is refused by the agent of its node', 'are refused by the agents of their nodes')}`}`,
  ];
}

function hostsText(vm: VmFinding, most: number): string {
  const { nodes, refused } = vm;
  if (isNotApplied(vm)) return `node ${vm.running?.node}, where it is, does not apply it`;
  const all = nodes.length + refused.length;
  if (all === 0) return 'its node selector matches no node';
  if (nodes.length === 0)
    return all === 1 ? 'the only node it may run on cannot host it' : `none of ${all} nodes can host it`;
  if (refused.length === 0) return `every node it may run on can host it (${all})`;
  return `${nodes.length} of ${all} nodes can host it: ${someNames(nodes, most)}`;
}

function details({ refused, fallBack, running }: VmFinding, most: number): string[] {
  const byReason = [...groupBy(refused, ({ message }) => message)];
  const groups = byReason.map(
    ([message, list]) =>
      `not ${someNames(
        list.map(({ node }) => node),
        most,
      )}: ${message}`,
  );
  const others = byReason.slice(most).flatMap(([, list]) => list).length;
  return [
    ...groups.slice(0, most),
    ...(others > 0 ? [`not ${others} more nodes, for similar reasons (-o wide names them)`] : []),
    ...(fallBack.length > 0 ? [`"all" would replace the mask on ${someNames(fallBack, most)}`] : []),
    ...(running && running.reason !== 'MaskApplied' ? [running.text] : []),
  ];
}
