import { PlumblineError } from '../errors.ts';
import { isNetworkResource } from '../kubelet/report.ts';
import { wantsWholeCores } from '../launcher/annotation.ts';
import { type ContainerPath, isAt } from '../launcher/containers.ts';
import { guestTopology } from '../launcher/cpus.ts';
import { maskRefusals, maskWithExclusiveCpus } from '../launcher/mask-request.ts';
import { smtAffinity } from '../launcher/smt-affinity.ts';
import { DECISION_ANNOTATION, PLACED_RESOURCE, PLACEMENT_ANNOTATION } from '../names.ts';
import type { ContainerShape, PodShape, VmiShape } from '../shapes.ts';
import { decisionText, NOTHING_TO_DO, placementText } from './decision-annotation.ts';
import {
  type AdmissionFinding,
  type ClusterFacts,
  cpusWhileRunning,
  type Decision,
  type LauncherFacts,
  type OrdinaryFacts,
  type PodChange,
  type PodCpus,
  type PodFacts,
} from './facts.ts';
import { cpusOfLauncher } from './launcher-cpus.ts';
import { podNetworks, reachFindings } from './networks.ts';
import { cpusOfOrdinary } from './ordinary-cpus.ts';
import { lastingFindings, schedulingOf } from './scheduling.ts';

/**
 * Decides about one pod, on each of its admission passes. Unchanged: a pod that is neither a launcher nor asks for
 * whole cores, and a launcher whose VMI is absent (404) or has another uid, because its owner is gone.
 * Refused: a launcher whose VMI is unreadable (503: virt-controller creates it again soon, and unpadded it would never
 * be scheduled), a malformed annotation (400), and Plumbline's resources or decision without a decision (403).
 */
export function decide(facts: PodFacts): Decision {
  try {
    switch (facts.kind) {
      case 'unreadable':
        return refusedEarly(400, 'no-pod', facts.why);
      case 'malformed':
        return refusedEarly(400, 'malformed', facts.why);
      case 'other':
        return unchanged(facts.pod);
      case 'ordinary':
        return decideParts(facts, cpusOfOrdinary(facts), facts.cluster);
      case 'launcher':
        return decideLauncher(facts);
    }
  } catch (error) {
    if (error instanceof PlumblineError) return refusedEarly(400, 'malformed', error.message);
    throw error;
  }
}

const REVIEW_MARK: PodChange = {
  containers: [],
  annotations: { [DECISION_ANNOTATION]: NOTHING_TO_DO, [PLACEMENT_ANNOTATION]: undefined },
  nodes: undefined,
};

function decideLauncher(facts: LauncherFacts): Decision {
  const { pod, vmi, owner } = facts;
  const name = `VirtualMachineInstance ${facts.namespace}/${vmi.name}`;
  switch (owner.kind) {
    case 'not-asked':
      return conclude(facts, REVIEW_MARK, foreignRequests(pod, { list: 'containers', index: facts.compute }, []));
    case 'found':
      return decideParts(facts, cpusOfLauncher(facts, owner), owner.cluster, owner.vmi);
    case 'absent':
      return unchanged(pod, `${name} does not exist, so the webhook leaves this launcher unchanged`);
    case 'replaced': {
      const why = `${name} was re-created (uid ${owner.uid}, this launcher belongs to ${vmi.uid})`;
      return unchanged(pod, `${why}, so the webhook leaves this launcher unchanged`);
    }
    case 'unreadable':
      return refusedEarly(503, 'vmi-unreadable', `${name} could not be read (${owner.why}); try again`);
    case 'malformed':
      return refusedEarly(400, 'malformed', owner.why);
  }
}

/** @throws ParseError if an annotation is malformed */
function decideParts(
  facts: LauncherFacts | OrdinaryFacts,
  cpus: PodCpus,
  cluster: ClusterFacts,
  vmi?: VmiShape,
): Decision {
  const { pod, namespace, settings } = facts;
  const { exclusive, bearer } = cpus;
  const networks = podNetworks({ namespace, pod, vmi, exclusive }, cluster.networks);
  const spansCells = vmi?.spec.domain.cpu?.numa?.guestMappingPassthrough != null;
  const resources = exclusive ? [...cpus.plumblineResources, ...networks.resources] : [];
  const { candidates, nodeKinds } = cluster;
  // Without a choice between nodes with and without SMT, the threads change nothing.
  const isMixed = new Set(candidates.map(({ threadsPerCore }) => threadsPerCore === 1)).size > 1;
  const guestThreads = vmi !== undefined && cpus.answered && isMixed ? guestTopology(vmi).threads : 1;
  const amounts = cpus.amounts.map((amount) => amount.cpus);
  const nodes = cpus.answered ? smtAffinity(amounts, candidates, nodeKinds) : undefined;
  const findings = [
    ...cpus.findings,
    ...networks.findings,
    ...reachFindings(networks.required, { cpus: cpusWhileRunning(cpus), spansCells }, cluster, settings.oversized),
    ...foreignRequests(pod, bearer, [...cpus.plumblineResources, ...networks.mayHave]),
    ...(vmi === undefined || facts.kind === 'ordinary' ? [] : maskFindings(facts, vmi, exclusive)),
  ];
  const notes = [...findings, ...lastingFindings(schedulingOf(pod.spec.schedulerName, facts.scheduler))];
  const isLeftAlone = facts.kind === 'ordinary' && !exclusive;
  const changes = {
    containers: cpus.containers.map((container) => ({
      ...container,
      resources: isAt(bearer, container) ? resources : [],
    })),
    annotations: {
      [DECISION_ANNOTATION]: isLeftAlone ? undefined : decisionText({ ...cpus, ...networks, resources, nodes, notes }),
      [PLACEMENT_ANNOTATION]: placementText({ ...networks, spansCells, guestThreads }, networks.resources),
    },
    nodes,
  };
  return conclude(facts, changes, findings);
}

/** If the findings contain errors, it refuses the pod with all of them as the reason, and the code of the first. */
function conclude(
  facts: LauncherFacts | OrdinaryFacts,
  changes: PodChange,
  findings: readonly AdmissionFinding[],
): Decision {
  const scheduling = schedulingOf(facts.pod.spec.schedulerName, facts.scheduler);
  const of = (severity: AdmissionFinding['severity']) => findings.filter((finding) => finding.severity === severity);
  const errors = of('error');
  const notes = [...of('warning'), ...of('information'), ...scheduling.findings];
  const [error] = errors;
  if (error !== undefined) {
    const { status: code = 422 } = error;
    const reason = errors.map(({ message }) => message).join('; ');
    return { outcome: 'refused', code, reason, findings: [...errors, ...notes] };
  }
  return { outcome: 'changed', changes: { ...changes, scheduler: scheduling.set }, findings: notes };
}

/** The decision for a pod without changes. If a launcher asked for something, its owner gets the reason. */
function unchanged(pod: PodShape, why?: string): Decision {
  const text = forbiddenUse(pod);
  if (text !== undefined) return refusedEarly(403, 'reserved', text);
  if (why === undefined || !wantsWholeCores(pod.metadata)) return { outcome: 'unchanged', findings: [] };
  return { outcome: 'unchanged', findings: [{ severity: 'warning', code: 'vmi-gone', message: why }] };
}

function refusedEarly(status: number, code: string, reason: string): Decision {
  const finding: AdmissionFinding = { severity: 'error', code, message: reason, status };
  return { outcome: 'refused', code: status, reason, findings: [finding] };
}

function foreignRequests(
  pod: PodShape,
  bearer: ContainerPath | undefined,
  mayHave: readonly string[],
): AdmissionFinding[] {
  const message = reservedRequest(pod, bearer, mayHave);
  return message === undefined ? [] : [{ severity: 'error', code: 'reserved', message, status: 403 }];
}

/**
 * The mask comes from the pod, as on the node; the number of vCPUs comes from the VMI. It is not checked for a VM that
 * migrates: KubeVirt may have hotplugged vCPUs, which changes the VMI without its mask.
 */
function maskFindings({ pod, purpose }: LauncherFacts, { spec }: VmiShape, exclusive: boolean): AdmissionFinding[] {
  const { metadata } = pod;
  const refusals = maskRefusals({ metadata, spec, vcpusUnknown: purpose === 'migration-target' });
  const messages = refusals.length === 0 && exclusive ? maskWithExclusiveCpus(metadata) : refusals;
  return messages.map((message) => ({ severity: 'error', code: 'cpu-mask', message }));
}

const NOT_YOURS = ', which only Plumbline may set; remove it';

/**
 * The first of Plumbline's own resources that a pod requests without permission: a tenant could use up a node's.
 * @param bearer the container that may request one each of `mayHave`
 */
function reservedRequest(pod: PodShape, bearer?: ContainerPath, mayHave: readonly string[] = []): string | undefined {
  for (const list of ['containers', 'initContainers'] as const) {
    for (const [index, container] of (pod.spec[list] ?? []).entries()) {
      const isBearer = isAt(bearer, { list, index });
      const foreign = reservedAmounts(container).find(
        ([resource, amount]) => !(isBearer && amount === '1' && mayHave.includes(resource)),
      );
      if (foreign !== undefined) return `container ${container.name} asks for ${foreign.join(': ')}${NOT_YOURS}`;
    }
  }
  return undefined;
}

function reservedAmounts({ resources }: ContainerShape): [string, string][] {
  const amounts = [...Object.entries(resources?.requests ?? {}), ...Object.entries(resources?.limits ?? {})];
  return amounts.filter(([resource]) => isNetworkResource(resource) || resource === PLACED_RESOURCE);
}

/** The same check for a pod without a decision, including its decision annotation, which Plumbline did not write. */
function forbiddenUse(pod: PodShape): string | undefined {
  const annotations = pod.metadata.annotations ?? {};
  const used = [DECISION_ANNOTATION, PLACEMENT_ANNOTATION].find((name) => annotations[name] !== undefined);
  if (used !== undefined) return `the pod has the annotation ${used}${NOT_YOURS}`;
  return reservedRequest(pod);
}
