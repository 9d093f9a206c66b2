import { PlumblineError } from '../errors.ts';
import { wantsWholeCores } from '../launcher/annotation.ts';
import { guestTopology } from '../launcher/cpus.ts';
import { maskRefusals, maskWithOwnCpus } from '../launcher/mask-request.ts';
import { smtAffinity } from '../launcher/smt-affinity.ts';
import { DECISION_ANNOTATION, PLACEMENT_ANNOTATION } from '../names.ts';
import type { PodShape, VmiShape } from '../shapes.ts';
import { cpusOfLauncher, cpusOfOrdinary, isAt, lastingCpus, type PodCpus } from './cpus.ts';
import { decisionText, NOTHING_TO_DO, placementText } from './decision-annotation.ts';
import type {
  AdmissionFinding,
  ClusterFacts,
  Decision,
  LauncherFacts,
  OrdinaryFacts,
  Place,
  PodChange,
  PodFacts,
} from './facts.ts';
import { networksOf, reachFindings } from './networks.ts';
import { forbiddenUse, reservedRequest } from './reserved.ts';
import { lastingFindings, schedulingOf } from './scheduling.ts';

/**
 * Decides about one pod, on each of its admission passes. It admits a pod unchanged if the pod is neither a launcher
 * nor asks for whole cores, and a launcher if its VMI cannot change anything. For any other launcher:
 *
 * - VMI found: the launcher is padded and requests device resources, as annotations and networks require.
 * - VMI absent (404): admitted unchanged, with a warning. The owner is gone and the pod will be garbage-collected.
 * - VMI with another uid: the same. The pod belongs to a VMI that was deleted and created again.
 * - VMI unreadable (timeout, no permission): refused with 503. virt-controller creates the launcher again soon, and an
 *   unpadded launcher would never be scheduled.
 *
 * Annotations that cannot be parsed refuse the pod (400) with the reason. A pod without a decision that has Plumbline's
 * resources or decision annotation is refused (403).
 */
export function decide(facts: PodFacts): Decision {
  try {
    switch (facts.kind) {
      case 'unreadable':
        return turnedAway(400, 'no-pod', facts.why);
      case 'other':
        return unchanged(facts.pod);
      case 'ordinary':
        return decideParts(facts, { cpus: cpusOfOrdinary(facts), cluster: facts.cluster });
      case 'launcher':
        return decideLauncher(facts);
    }
  } catch (error) {
    if (error instanceof PlumblineError) return turnedAway(400, 'malformed', error.message);
    throw error;
  }
}

function decideLauncher(facts: LauncherFacts): Decision {
  const { pod, vmi, owner } = facts;
  const name = `VirtualMachineInstance ${facts.namespace}/${vmi.name}`;
  switch (owner.kind) {
    case 'not-asked':
      return conclude(facts, ONLY_SEEN, foreignRequests(pod, { list: 'containers', index: facts.compute }, []));
    case 'found': {
      const { vmi: its, cluster } = owner;
      return decideParts(facts, { cpus: cpusOfLauncher(facts, its, cluster), cluster, vmi: its });
    }
    case 'absent':
      return unchanged(pod, `${name} does not exist, so the webhook leaves this launcher unchanged`);
    case 'replaced': {
      const why = `${name} was re-created (uid ${owner.uid}, this launcher belongs to ${vmi.uid})`;
      return unchanged(pod, `${why}, so the webhook leaves this launcher unchanged`);
    }
    case 'unreadable':
      return turnedAway(503, 'vmi-unreadable', `${name} could not be read (${owner.why}); try again`);
    case 'malformed':
      return turnedAway(400, 'malformed', owner.why);
  }
}

interface Parts {
  readonly cpus: PodCpus;
  readonly cluster: ClusterFacts;
  /** Absent for an ordinary pod. */
  readonly vmi?: VmiShape | undefined;
}

/**
 * Decides CPUs, devices, nodes and scheduler of a pod, and whether to refuse it.
 * @throws ParseError if an annotation is malformed
 */
function decideParts(facts: LauncherFacts | OrdinaryFacts, { cpus, cluster, vmi }: Parts): Decision {
  const { pod, namespace, settings } = facts;
  const { exclusive, bearer } = cpus;
  const networks = networksOf({ namespace, pod, vmi, exclusive }, cluster.networks);
  const spansCells = vmi?.spec.domain.cpu?.numa?.guestMappingPassthrough != null;
  const resources = exclusive ? [...cpus.own, ...networks.resources] : [];
  const { candidates, nodeKinds: reported } = cluster;
  // Without a choice between nodes with and without SMT, the threads change nothing.
  const isMixed = new Set(candidates.map(({ threadsPerCore }) => threadsPerCore === 1)).size > 1;
  const guestThreads = vmi !== undefined && cpus.answered && isMixed ? guestTopology(vmi).threads : 1;
  const amounts = cpus.amounts.map((one) => one.cpus);
  const nodes = cpus.answered ? smtAffinity({ cpus: amounts, candidates, reported }) : undefined;
  const isLeftAlone = facts.kind === 'ordinary' && !exclusive;
  const found = [
    ...cpus.findings,
    ...networks.findings,
    ...reachFindings(networks.held, { cpus: lastingCpus(cpus), spansCells }, cluster, settings.oversized),
    ...foreignRequests(pod, bearer, [...cpus.own, ...networks.mayHave]),
    ...(vmi === undefined || facts.kind === 'ordinary' ? [] : maskFindings(facts, vmi, exclusive)),
  ];
  const text = isLeftAlone
    ? undefined
    : decisionText({
        ...cpus,
        cpus: cpus.stated,
        networks: networks.held,
        resources,
        nodes,
        notes: [...found, ...lastingFindings(schedulingOf(pod.spec.schedulerName, facts.scheduler))],
      });
  const changes = {
    containers: cpus.containers.map((one) => ({ ...one, resources: isAt(bearer, one) ? resources : [] })),
    annotations: {
      [DECISION_ANNOTATION]: text,
      [PLACEMENT_ANNOTATION]: placementText({ ...networks, spansCells, guestThreads }, networks.resources),
    },
    nodes,
  };
  return conclude(facts, changes, found);
}

/** Builds the decision. If the findings contain errors, it refuses the pod and the first one is the reason. */
function conclude(
  facts: LauncherFacts | OrdinaryFacts,
  changes: PodChange,
  found: readonly AdmissionFinding[],
): Decision {
  const { set: scheduler, findings } = schedulingOf(facts.pod.spec.schedulerName, facts.scheduler);
  const of = (severity: AdmissionFinding['severity']) => found.filter((one) => one.severity === severity);
  const [errors, said] = [of('error'), [...of('warning'), ...of('information'), ...findings]];
  const [error] = errors;
  if (error !== undefined) {
    const { message: reason, status: code = 422 } = error;
    return { outcome: 'refused', code, reason, findings: [...errors, ...said] };
  }
  return { outcome: 'changed', changes: { ...changes, scheduler }, findings: said };
}

/** Marks the launcher as reviewed and removes annotations that only Plumbline may set. */
const ONLY_SEEN: PodChange = {
  containers: [],
  annotations: { [DECISION_ANNOTATION]: NOTHING_TO_DO, [PLACEMENT_ANNOTATION]: undefined },
  nodes: undefined,
};

/** The decision for a pod without changes. If a launcher asked for something, its owner gets the reason. */
function unchanged(pod: PodShape, why?: string): Decision {
  const text = forbiddenUse(pod);
  if (text !== undefined) return turnedAway(403, 'reserved', text);
  if (why === undefined || !wantsWholeCores(pod.metadata)) return { outcome: 'unchanged', findings: [] };
  return { outcome: 'unchanged', findings: [{ severity: 'warning', code: 'vmi-gone', message: why }] };
}

/** A refusal that makes all other checks unnecessary. */
function turnedAway(status: number, code: string, reason: string): Decision {
  const finding: AdmissionFinding = { severity: 'error', code, message: reason, status };
  return { outcome: 'refused', code: status, reason, findings: [finding] };
}

function foreignRequests(pod: PodShape, bearer: Place | undefined, mayHave: readonly string[]): AdmissionFinding[] {
  const found = reservedRequest(pod, bearer, mayHave);
  return found === undefined ? [] : [{ severity: 'error', code: 'reserved', message: found, status: 403 }];
}

/**
 * Checks the mask. The mask comes from the pod, as on the node; the number of vCPUs comes from the VMI. KubeVirt may
 * have hotplugged vCPUs into a VM that migrates. That changes the VMI without its mask, so the number of vCPUs is not
 * checked then.
 */
function maskFindings({ pod, purpose }: LauncherFacts, { spec }: VmiShape, exclusive: boolean): AdmissionFinding[] {
  const { metadata } = pod;
  const found = maskRefusals({ metadata, spec, vcpusUnknown: purpose === 'migration-target' });
  const messages = found.length === 0 && exclusive ? maskWithOwnCpus(metadata) : found;
  return messages.map((message) => ({ severity: 'error', code: 'cpu-mask', message }));
}
