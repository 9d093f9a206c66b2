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
import { formatMask } from '../../model/cpu-mask/mask.ts';
import { CPU_MASK_ANNOTATION } from '../../model/names.ts';
import { maskedVmOf, maskHostOf, type SurveyedNode, surveyMask } from '../../model/placement/mask-fit.ts';
import { readScheduler } from '../extender/ask.ts';
import { INSTANCES, MACHINES, MIGRATIONS, NODES, within } from '../support/kinds.ts';
import { assertReported, readAgentLeases, readAll, readIfAllowed, readTopologies } from '../support/lists.ts';

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
  const running = new Map(
    instances.map(({ metadata, spec, status }) => [keyOf(metadata), runningInstance({ metadata, spec, status })]),
  );
  const templates = [
    ...machines.map((machine) => {
      const {
        metadata,
        spec: { template, instancetype },
      } = machine;
      return {
        kind: 'VirtualMachine' as const,
        metadata,
        machine,
        template: {
          metadata: { annotations: template.metadata?.annotations },
          spec: template.spec,
          vcpusUnknown: instancetype != null,
        },
      };
    }),
    ...instances
      .filter(({ metadata }) => !metadata.ownerReferences?.some(({ kind }) => kind === 'VirtualMachine'))
      .map(({ metadata, spec }) => ({
        kind: 'VirtualMachineInstance' as const,
        metadata,
        machine: undefined,
        template: { metadata, spec, vcpusUnknown: false },
      })),
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
    nodes: nodes.map(({ metadata }) => ({
      name: metadata.name ?? '',
      labels: new Map(Object.entries(metadata.labels ?? {})),
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
async function readIfInstalled<Item>(...args: Parameters<typeof readAll<Item>>): Promise<Item[]> {
  try {
    return await readAll(...args);
  } catch (error) {
    if (isNotFound(error)) return [];
    throw error;
  }
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
export function isNotApplied({ running }: Pick<VmFinding, 'running'>): boolean {
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
    machine: machine && machineFacts(machine, now),
    instance,
    migration,
    scheduler,
    now,
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
