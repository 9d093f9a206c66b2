import type * as z from 'zod';
import { type Cause, pauseOf, STOPPED_REPORT } from '../../diagnosis/facts.ts';
import { hostsOf, type ReportedHost } from '../../diagnosis/hosts.ts';
import { REASONS } from '../../diagnosis/reasons.ts';
import { runningMaskedVm } from '../../diagnosis/running.ts';
import { isNotFound, type KubeClient } from '../../kube/client.ts';
import { startedInstance, virtualMachine } from '../../kube/virtual-machines.ts';
import { formatMask } from '../../model/cpu-mask/mask.ts';
import { CPU_MASK_ANNOTATION } from '../../model/names.ts';
import { maskedVmOf, maskHostOf, type SurveyedNode, surveyMask } from '../../model/placement/mask-fit.ts';
import { readScheduler } from '../extender/ask.ts';
import { INSTANCES, MACHINES, NODES, within } from '../support/kinds.ts';
import { assertReported, readAgentLeases, readAll, readTopologies } from '../support/lists.ts';

type VerifyFacts = Awaited<ReturnType<typeof readVerifyFacts>>;
type MaskedMachine = VerifyFacts['vms'][number];

const keyOf = ({ namespace = '', name = '' }: { namespace?: string | undefined; name?: string | undefined }) =>
  `${namespace}/${name}`;

/** @param namespace undefined: all @param now milliseconds since 1970 @throws CliError, KubeError */
export async function readVerifyFacts(client: KubeClient, namespace: string | undefined, now: number) {
  const [machines, instances, nodes, topologies, leases, scheduler] = await Promise.all([
    readIfInstalled(client, ...within([MACHINES[0], virtualMachine], namespace)),
    readIfInstalled(client, ...within([INSTANCES[0], startedInstance], namespace)),
    readAll(client, ...NODES),
    readTopologies(client),
    readAgentLeases(client, now),
    readScheduler(client, now),
  ]);
  assertReported(topologies);
  const { hosts } = hostsOf(topologies);
  const running = new Map(instances.map(({ metadata, status }) => [keyOf(metadata), placeOf({ metadata, status })]));
  const templates = [
    ...machines.map(({ metadata, spec: { template, instancetype } }) => ({
      kind: 'VirtualMachine' as const,
      metadata,
      template: {
        metadata: { annotations: template.metadata?.annotations },
        spec: template.spec,
        vcpusUnknown: instancetype != null,
      },
    })),
    ...instances
      .filter(({ metadata }) => !metadata.ownerReferences?.some(({ kind }) => kind === 'VirtualMachine'))
      .map(({ metadata, spec }) => ({
        kind: 'VirtualMachineInstance' as const,
        metadata,
        template: { metadata, spec, vcpusUnknown: false },
      })),
  ];
  const vms = templates.flatMap(({ kind, metadata, template }) => {
    const masked = maskedVmOf(template);
    if (masked === undefined) return [];
    const { namespace: home = '', name = '' } = metadata;
    /** The annotation, unchanged. */
    const text = template.metadata.annotations?.[CPU_MASK_ANNOTATION] ?? '';
    return [{ kind, namespace: home, name, masked, text, running: running.get(keyOf(metadata)) }];
  });
  return {
    vms: vms.sort((a, b) => keyOf(a).localeCompare(keyOf(b))),
    nodes: nodes.map(({ metadata }) => ({
      name: metadata.name ?? '',
      labels: new Map(Object.entries(metadata.labels ?? {})),
    })),
    hosts,
    silent: leases?.silent ?? new Set<string>(),
    scheduler,
    now,
  };
}

/** Empty without KubeVirt; a missing permission is an error, as an empty list would look like success. @throws KubeError */
async function readIfInstalled<Item>(...args: Parameters<typeof readAll<Item>>): Promise<Item[]> {
  try {
    return await readAll(...args);
  } catch (error) {
    if (isNotFound(error)) return [];
    throw error;
  }
}

/** Where it runs: `pods` has the node of each of its launchers, by the launcher's uid. */
function placeOf(vmi: Pick<z.infer<typeof startedInstance>, 'metadata' | 'status'>) {
  const { nodeName, activePods, phase } = vmi.status ?? {};
  if (nodeName === undefined || phase !== 'Running') return undefined;
  return { node: nodeName, pods: activePods ?? {}, pause: pauseOf(vmi) };
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

/** Whether the agent of its node refuses or no longer applies the mask. */
export function isNotApplied({ running }: Pick<VmFinding, 'running'>): boolean {
  return running?.reason === 'PinningRefused' || running?.reason === 'MaskNotApplied';
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

function runningOf(
  { running, namespace, name, kind }: MaskedMachine,
  hosts: ReadonlyMap<string, ReportedHost>,
  { silent, scheduler, now }: Pick<VerifyFacts, 'silent' | 'scheduler' | 'now'>,
) {
  if (running === undefined) return undefined;
  const { node, pods } = running;
  const pinning = hosts.get(node)?.status.pinning?.find(({ podUID }) => pods[podUID] === node);
  const facts = {
    namespace,
    name,
    kind: kind === 'VirtualMachine' ? ('vm' as const) : ('vmi' as const),
    node: { silent: silent.has(node), assigned: [], pinning },
    scheduler,
    now,
  };
  const causes = runningMaskedVm(facts, node, running.pause);
  const [{ reason, remedies }] = causes as [Cause];
  return { node, verdict: REASONS[reason].verdict, reason, text: causes.map(({ text }) => text).join('; '), remedies };
}
