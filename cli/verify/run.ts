import type * as z from 'zod';
import { STOPPED_REPORT, type VmFacts } from '../../diagnosis/facts.ts';
import { hostsOf, type ReportedHost } from '../../diagnosis/hosts.ts';
import { deadDpu, explainedVm, explainedVmi } from '../../diagnosis/objects.ts';
import type { Reason } from '../../diagnosis/reasons.ts';
import { runningMaskedVm } from '../../diagnosis/running.ts';
import { type Launcher, vmState } from '../../diagnosis/state.ts';
import { instanceFacts, machineFacts, migrationFacts } from '../../diagnosis/vm-facts.ts';
import { isNotFound, type KubeClient } from '../../kube/client.ts';
import { startedInstance, virtualMachine } from '../../kube/virtual-machines.ts';
import { countText } from '../../model/amounts.ts';
import { formatMask } from '../../model/cpu-mask/mask.ts';
import { groupBy } from '../../model/lists.ts';
import { CPU_MASK_ANNOTATION } from '../../model/names.ts';
import { maskedVmOf, maskHostOf, type SurveyedNode, surveyMask } from '../../model/placement/mask-fit.ts';
import { readScheduler } from '../extender/ask.ts';
import { type ClusterFlags, usingCluster } from '../support/cluster.ts';
import { EXIT } from '../support/exit-status.ts';
import { INSTANCES, MACHINES, MIGRATIONS, NODES, within } from '../support/kinds.ts';
import { assertReported, readAgentLeases, readAll, readIfAllowed, readTopologies } from '../support/lists.ts';
import { type OutputFormat, print } from '../support/output.ts';
import { cutLine, type Line, paint, someNames, wrap } from '../support/terminal.ts';

const maskedMachine = virtualMachine.extend({
  spec: virtualMachine.shape.spec.extend({
    running: explainedVm.shape.spec.shape.running,
    runStrategy: explainedVm.shape.spec.shape.runStrategy,
  }),
  status: explainedVm.shape.status,
});
const maskedInstance = startedInstance.extend({ status: explainedVmi.shape.status });

type VerifyFacts = Awaited<ReturnType<typeof readVerifyFacts>>;
type MaskedMachine = VerifyFacts['vms'][number];

const keyOf = ({ namespace = '', name = '' }: { namespace?: string | undefined; name?: string | undefined }) =>
  `${namespace}/${name}`;

/** @param namespace undefined: all @param now milliseconds since 1970 @throws CliError, KubeError */
export async function readVerifyFacts(client: KubeClient, namespace: string | undefined, now: number) {
  const [machines, instances, migrations, nodes, topologies, leases, scheduler] = await Promise.all([
    readIfInstalled(client, ...within([MACHINES[0], maskedMachine], namespace)),
    readIfInstalled(client, ...within([INSTANCES[0], maskedInstance], namespace)),
    readIfAllowed(client, ...within(MIGRATIONS, namespace)),
    readAll(client, ...NODES),
    readTopologies(client),
    readAgentLeases(client, now),
    readScheduler(client, now),
  ]);
  assertReported(topologies);
  const { hosts } = hostsOf(topologies);
  const running = new Map(instances.map((instance) => [keyOf(instance.metadata), runningInstance(instance)]));
  const templates = [
    ...machines.map((machine) => {
      const { template, instancetype } = machine.spec;
      const { annotations } = template.metadata ?? {};
      const masked = { metadata: { annotations }, spec: template.spec, vcpusUnknown: instancetype != null };
      return { kind: 'VirtualMachine' as const, metadata: machine.metadata, machine, template: masked };
    }),
    ...instances
      .filter(({ metadata }) => !metadata.ownerReferences?.some(({ kind }) => kind === 'VirtualMachine'))
      .map(({ metadata, spec }) => {
        const template = { metadata, spec, vcpusUnknown: false };
        return { kind: 'VirtualMachineInstance' as const, metadata, machine: undefined, template };
      }),
  ];
  const vms = templates.flatMap(({ kind, metadata, machine, template }) => {
    const masked = maskedVmOf(template);
    if (masked === undefined) return [];
    const { namespace: home = '', name = '' } = metadata;
    /** The annotation, unchanged. */
    const text = template.metadata.annotations?.[CPU_MASK_ANNOTATION] ?? '';
    return [{ kind, namespace: home, name, machine, masked, text, running: running.get(keyOf(metadata)) }];
  });
  return {
    vms: vms.sort((a, b) => keyOf(a).localeCompare(keyOf(b))),
    nodes: nodes.map(({ metadata: { name = '', labels } }) => ({
      name,
      labels: new Map(Object.entries(labels ?? {})),
    })),
    hosts,
    silent: leases?.silent ?? new Set<string>(),
    deadDpus: new Map(nodes.map((node) => [node.metadata.name ?? '', deadDpu(node)])),
    migrations,
    scheduler,
    now,
  };
}

/** Empty without KubeVirt; a missing permission is an error, as an empty list would look like success. @throws KubeError */
function readIfInstalled<Item>(...args: Parameters<typeof readAll<Item>>): Promise<Item[]> {
  return readAll(...args).catch((error: unknown) => {
    if (isNotFound(error)) return [];
    throw error;
  });
}

/** Of an instance that runs. */
function runningInstance({ metadata, status }: z.infer<typeof maskedInstance>) {
  if (!status?.nodeName || status.phase !== 'Running') return undefined;
  return { metadata, status, node: status.nodeName, pods: status.activePods ?? {} };
}

export type Verification = ReturnType<typeof verifyMasks>;
export type VmFinding = ReturnType<typeof findingOf> & { readonly running: ReturnType<typeof runningOf> };

export function verifyMasks(facts: VerifyFacts) {
  const { vms, nodes, hosts, silent } = facts;
  const byName = new Map(hosts.map((host) => [host.name, host]));
  const surveyed = nodes.map(({ name, labels }): SurveyedNode => {
    // The last report of an agent with an expired Lease is old.
    const host = silent.has(name) ? undefined : byName.get(name);
    return { name, label: (key) => labels.get(key), host: host && maskHostOf(host.host) };
  });
  const findings = vms.map((vm) => ({ ...findingOf(vm, surveyed, silent), running: runningOf(vm, byName, facts) }));
  return {
    vms: findings,
    withoutNode: findings.filter((finding) => finding.nodes.length === 0).length,
    notApplied: findings.filter(isNotApplied).length,
    nodes: nodes.length,
    reporting: surveyed.filter(({ host }) => host !== undefined).length,
  };
}

const NOT_APPLIED: readonly Reason[] = ['PinningRefused', 'MaskNotApplied'];

/** Whether the agent of its node refuses or no longer applies the mask. */
function isNotApplied({ running }: Pick<VmFinding, 'running'>): boolean {
  return running?.reasons.some((reason) => NOT_APPLIED.includes(reason)) === true;
}

function findingOf(vm: MaskedMachine, nodes: readonly SurveyedNode[], silent: ReadonlySet<string>) {
  const verdicts = surveyMask(vm.masked, nodes).map(({ node, verdict }) => ({ node: node.name, verdict }));
  return {
    namespace: vm.namespace,
    name: vm.name,
    kind: vm.kind,
    mask: vm.masked.maskRequest === undefined ? vm.text : formatMask(vm.masked.maskRequest.mask),
    nodes: verdicts.flatMap(({ node, verdict }) => (verdict.fits ? [node] : [])),
    fallBack: verdicts.flatMap(({ node, verdict }) => (verdict.fits && verdict.fellBack ? [node] : [])),
    refused: verdicts.flatMap(({ node, verdict }) =>
      verdict.fits ? [] : [{ node, reason: verdict.reason, message: silent.has(node) ? STOPPED_REPORT : verdict.text }],
    ),
  };
}

/** As in `plumbline explain`, from the instance and the reports: the launchers themselves are not read. */
function runningOf(vm: MaskedMachine, hosts: ReadonlyMap<string, ReportedHost>, verify: VerifyFacts) {
  if (vm.running === undefined) return undefined;
  const { namespace, name, kind, machine } = vm;
  const { metadata, status, node, pods } = vm.running;
  const { scheduler, silent, now } = verify;
  const instance = instanceFacts({ metadata, status });
  const moves = verify.migrations?.filter(
    (migration) => migration.metadata.namespace === namespace && migration.spec.vmiName === name,
  );
  const migration = migrationFacts(status.migrationState, moves);
  const facts: VmFacts = {
    namespace,
    name,
    kind: kind === 'VirtualMachine' ? 'vm' : 'vmi',
    instance,
    migration,
    scheduler,
    now,
    machine: machine && machineFacts(machine, now),
  };
  const launchers = Object.entries(pods).map(([uid, at]): Launcher => {
    const pinning = hosts.get(at)?.status.pinning?.find(({ podUID }) => podUID === uid);
    const nodeState = { deadDpu: verify.deadDpus.get(at), silent: silent.has(at), assigned: [], pinning };
    const pause = at === node ? instance.pause : undefined;
    return {
      uid,
      node: at || undefined,
      migration: at === node ? undefined : migration?.uid,
      created: 0,
      state: {
        life: { state: pause === undefined ? 'running' : 'paused' },
        causes: runningMaskedVm({ ...facts, node: nodeState }, at, pause),
      },
    };
  });
  const state = vmState(facts, launchers);
  const { verdict, reason, remedies } = state;
  const texts = [state.text, ...state.causes.map(({ text }) => text)];
  const reasons = [reason, ...state.causes.map((cause) => cause.reason)];
  return { node, verdict, reason, text: texts.join('; '), remedies, reasons };
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
