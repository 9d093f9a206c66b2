import { STOPPED_REPORT } from '../../diagnosis/facts.ts';
import { hostsOf } from '../../diagnosis/hosts.ts';
import { explainedVm } from '../../diagnosis/objects.ts';
import type { Reason } from '../../diagnosis/reasons.ts';
import type { Stage } from '../../diagnosis/state.ts';
import { type Vm, vmsOf } from '../../diagnosis/vms.ts';
import { isNotFound, type KubeClient } from '../../kube/client.ts';
import { isOfMachine } from '../../kube/cluster-view/vmis.ts';
import { virtualMachine } from '../../kube/virtual-machines.ts';
import { countText } from '../../model/amounts.ts';
import { formatMask } from '../../model/cpu-mask/mask.ts';
import { groupBy } from '../../model/lists.ts';
import { CPU_MASK_ANNOTATION } from '../../model/names.ts';
import {
  type MaskedVm,
  maskedVmOf,
  maskHostOf,
  type SurveyedNode,
  surveyMask,
} from '../../model/placement/mask-fit.ts';
import type { MetaShape } from '../../model/shapes.ts';
import { readScheduler } from '../extender/ask.ts';
import { type ClusterFlags, usingCluster } from '../support/cluster.ts';
import { EXIT } from '../support/exit-status.ts';
import { INSTANCES, LAUNCHERS, MACHINES, MIGRATIONS, NODES, within } from '../support/kinds.ts';
import { assertReported, readAgentLeases, readAll, readIfAllowed, readTopologies } from '../support/lists.ts';
import { type OutputFormat, print } from '../support/output.ts';
import { cutLine, type Line, paint, someNames, wrap } from '../support/terminal.ts';

/** With the template, whose mask and selectors are checked. */
const maskedMachine = explainedVm.extend({ spec: explainedVm.shape.spec.extend(virtualMachine.shape.spec.shape) });

const keyOf = ({ namespace = '', name = '' }: { namespace?: string | undefined; name?: string | undefined }) =>
  `${namespace}/${name}`;

export type Verification = Awaited<ReturnType<typeof verifyMasks>>;
export type VmFinding = ReturnType<typeof findingOf> & { readonly running: ReturnType<typeof runningOf> };

/** @param namespace undefined: all @param now milliseconds since 1970 @throws CliError, KubeError */
export async function verifyMasks(client: KubeClient, namespace: string | undefined, now: number) {
  const [machines, instances, launchers, migrations, nodes, topologies, leases, scheduler] = await Promise.all([
    readIfInstalled(client, ...within([MACHINES[0], maskedMachine], namespace)),
    readIfInstalled(client, ...within(INSTANCES, namespace)),
    readAll(client, ...within(LAUNCHERS, namespace)),
    readIfAllowed(client, ...within(MIGRATIONS, namespace)),
    readAll(client, ...NODES),
    readTopologies(client),
    readAgentLeases(client, now),
    readScheduler(client, now),
  ]);
  assertReported(topologies);
  const { hosts } = hostsOf(topologies);
  const silent = leases?.silent ?? new Set<string>();
  const vms = vmsOf({ nodes, hosts, silent, machines, instances, launchers, migrations, scheduler, now });
  const running = new Map(vms.map((vm) => [keyOf(vm), runningOf(vm)]));
  const byName = new Map(hosts.map((host) => [host.name, host]));
  const surveyed = nodes.map(({ metadata: { name = '', labels } }): SurveyedNode => {
    // The last report of an agent with an expired Lease is old.
    const host = silent.has(name) ? undefined : byName.get(name);
    return { name, label: (key) => labels?.[key], host: host && maskHostOf(host.host) };
  });
  const templates = [
    ...machines.map(({ metadata, spec: { template, instancetype } }) => {
      const { annotations } = template.metadata ?? {};
      const masked = { metadata: { annotations }, spec: template.spec, vcpusUnknown: instancetype != null };
      return { kind: 'VirtualMachine' as const, metadata, template: masked };
    }),
    ...instances
      .filter(({ metadata }) => !isOfMachine(metadata))
      .map(({ metadata, spec }) => {
        return { kind: 'VirtualMachineInstance' as const, metadata, template: { metadata, spec, vcpusUnknown: false } };
      }),
  ];
  const findings = templates
    .flatMap((template) => {
      const masked = maskedVmOf(template.template);
      if (masked === undefined) return [];
      return [{ ...findingOf(template, masked, surveyed, silent), running: running.get(keyOf(template.metadata)) }];
    })
    .sort((a, b) => keyOf(a).localeCompare(keyOf(b)));
  return {
    vms: findings,
    withoutNode: findings.filter((finding) => finding.nodes.length === 0).length,
    notApplied: findings.filter(isNotApplied).length,
    nodes: nodes.length,
    reporting: surveyed.filter(({ host }) => host !== undefined).length,
  };
}

/** Empty without KubeVirt; a missing permission is an error, as an empty list would look like success. @throws KubeError */
function readIfInstalled<Item>(...args: Parameters<typeof readAll<Item>>): Promise<Item[]> {
  return readAll(...args).catch((error: unknown) => {
    if (isNotFound(error)) return [];
    throw error;
  });
}

interface MaskTemplate {
  readonly kind: 'VirtualMachine' | 'VirtualMachineInstance';
  readonly metadata: MetaShape;
  readonly template: Parameters<typeof maskedVmOf>[0];
}

function findingOf(
  { kind, metadata, template }: MaskTemplate,
  masked: MaskedVm,
  nodes: readonly SurveyedNode[],
  silent: ReadonlySet<string>,
) {
  const { namespace = '', name = '' } = metadata;
  const verdicts = surveyMask(masked, nodes).map(({ node, verdict }) => ({ node: node.name, verdict }));
  const invalid = template.metadata.annotations?.[CPU_MASK_ANNOTATION] ?? '';
  return {
    namespace,
    name,
    kind,
    mask: masked.maskRequest === undefined ? invalid : formatMask(masked.maskRequest.mask),
    nodes: verdicts.flatMap(({ node, verdict }) => (verdict.fits ? [node] : [])),
    fallBack: verdicts.flatMap(({ node, verdict }) => (verdict.fits && verdict.fellBack ? [node] : [])),
    refused: verdicts.flatMap(({ node, verdict }) =>
      verdict.fits ? [] : [{ node, reason: verdict.reason, message: silent.has(node) ? STOPPED_REPORT : verdict.text }],
    ),
  };
}

const STARTED: readonly Stage[] = ['running', 'not-as-requested', 'paused', 'migrating'];

/** As in `plumbline explain`; undefined for a VM that has not started. */
function runningOf({ launchers, state }: Vm) {
  if (!STARTED.includes(state.state)) return undefined;
  const { verdict, reason, remedies } = state;
  const guest = launchers.find(({ metadata }) => metadata.uid === state.launcher);
  const texts = [state.text, ...state.causes.map(({ text }) => text)];
  const reasons = [reason, ...state.causes.map((cause) => cause.reason)];
  return { node: guest?.spec.nodeName ?? '', verdict, reason, text: texts.join('; '), remedies, reasons };
}

const NOT_APPLIED: readonly Reason[] = ['PinningRefused', 'MaskNotApplied'];

/** Whether the agent of its node refuses or no longer applies the mask. */
function isNotApplied({ running }: { readonly running: ReturnType<typeof runningOf> }): boolean {
  return running?.reasons.some((reason) => NOT_APPLIED.includes(reason)) === true;
}

interface VerifyFlags extends ClusterFlags {
  readonly allNamespaces?: true;
  readonly output?: OutputFormat;
}

const isBad = (vm: VmFinding) => vm.nodes.length === 0 || isNotApplied(vm) || vm.running?.verdict === 'broken';

/** Prints which nodes can host each VM with a CPU mask. @throws CliError, KubeError */
export function run(flags: VerifyFlags): Promise<void> {
  return usingCluster(flags, async ({ client }) => {
    const namespace = flags.allNamespaces ? undefined : flags.namespace;
    const verification = await verifyMasks(client, namespace, Date.now());
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
  const silentText = silent > 0 ? ` (${countText(silent, 'does not report', 'do not report')})` : '';
  const fitting =
    withoutNode === 0 ? 'every mask fits some node' : countText(withoutNode, 'has no node', 'have no node');
  const refused = countText(
    notApplied,
    'is refused by the agent of its node',
    'are refused by the agents of their nodes',
  );
  const total = `${countText(vms.length, 'VM')} with a CPU mask on ${countText(nodes, 'node')}${silentText}: ${fitting}`;
  return [...lines, '', notApplied === 0 ? total : `${total}; ${refused}`];
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
  const groups = byReason.map(([message, list]) => {
    const names = list.map(({ node }) => node);
    return `not ${someNames(names, most)}: ${message}`;
  });
  const others = byReason.slice(most).flatMap(([, list]) => list).length;
  return [
    ...groups.slice(0, most),
    ...(others > 0 ? [`not ${others} more nodes, for similar reasons (-o wide names them)`] : []),
    ...(fallBack.length > 0 ? [`"all" would replace the mask on ${someNames(fallBack, most)}`] : []),
    ...(running && running.reason !== 'MaskApplied' ? [running.text] : []),
  ];
}
