import { decidedOf, networksWithoutDevice } from '../model/admission/decision-annotation.ts';
import { DEFAULT_SCHEDULER } from '../model/admission/scheduling.ts';
import { cpusText } from '../model/amounts.ts';
import { wantsWholeCores } from '../model/launcher/annotation.ts';
import { recognizeLauncher } from '../model/launcher/recognize.ts';
import { CPU_MASK_ANNOTATION, NUMA_AFFINITY_ANNOTATION, SCHEDULER } from '../model/names.ts';
import { NETWORKS_ANNOTATION } from '../model/networks/attachments.ts';
import type { PlacementNeeds } from '../model/placement/needs.ts';
import { isExclusive } from '../model/placement/preferences.ts';
import type { PodShape } from '../model/shapes.ts';
import { type Cause, cause, type VmFacts, whileOff } from './facts.ts';
import { type Named, plumbline, remedy, startAgain, startOnceWebhookWorks } from './remedies.ts';

export const schedulerOf = ({ spec }: PodShape): string => spec.schedulerName || DEFAULT_SCHEDULER;

const DEDICATE = 'set dedicatedCpuPlacement, isolateEmulatorThread and equal requests and limits';
const SHARED = cause(
  'SharedCpus',
  'this VM has no dedicated CPUs, so Plumbline neither pads nor places it',
  remedy('dedicate-cpus', `${DEDICATE} if it needs dedicated CPUs`),
);
const OF_CLAIM = cause(
  'SharedCpus',
  'this VM gets its CPUs from a claim (domain.cpu.dra), which Plumbline neither pads nor predicts',
);

export function bypassesOf(facts: VmFacts, pod: PodShape, needs: PlacementNeeds): Cause[] {
  const seen = [...unseen(facts, pod, needs), ...withoutDevice(facts, pod)];
  // A mask is for VMs without dedicated CPUs.
  if (isExclusive(needs) || needs.mask !== undefined) return [...seen, ...unasked(facts, pod)];
  if (pod.metadata.labels?.['kubevirt.io'] !== 'virt-launcher') return seen;
  return [...seen, facts.instance?.hasCpusOfClaim ? OF_CLAIM : SHARED];
}

/** What the webhook left out stays so until the VM starts again. */
function withoutDevice(named: Named, pod: PodShape): Cause[] {
  const networks = networksWithoutDevice(pod.metadata);
  if (networks.length === 0) return [];
  const text = `nothing keeps it near ${networks.join(', ')}: no node reported ${networks.length === 1 ? 'it' : 'them'} when its launcher was created`;
  const help = 'check the name of the network, or make a node report it; then start the VM again';
  return [cause('NetworkNotReported', text, startAgain(named, help, plumbline('doctor', 'networks')))];
}

/** A launcher that opts in always has a decision, which has the reason if it is not padded. */
function unseen(facts: VmFacts, pod: PodShape, needs: PlacementNeeds): Cause[] {
  if (recognizeLauncher(pod).kind !== 'launcher') return [];
  const omission = unpadded(pod, needs) ?? undecided(pod, needs);
  if (omission === undefined) return [];
  const [reason, what] = omission;
  const text = `the webhook did not see this launcher: ${what}${whileOff(facts)}`;
  return [cause(reason, text, startOnceWebhookWorks(facts))];
}

type Unseen = readonly ['WebhookMissed' | 'NotDecided', string];

function unpadded(pod: PodShape, needs: PlacementNeeds): Unseen | undefined {
  if (!isExclusive(needs) || !wantsWholeCores(pod.metadata) || decidedOf(pod.metadata) !== undefined) return undefined;
  const odd = needs.request.containers.filter(({ kind, cpus }) => kind !== 'init' && cpus % 2 !== 0);
  const halves = odd.map(({ name, cpus }) => {
    return `${name} asks for ${cpusText(cpus)}, which ${cpus === 1 ? 'is not a whole core' : 'are not whole cores'}`;
  });
  return ['WebhookMissed', ['it has no decision annotation', ...halves].join(', and ')];
}

/** The pod asks for networks or a mask and has no decision. For a running pod the agent's report about the mask counts instead. */
function undecided(pod: PodShape, needs: PlacementNeeds): Unseen | undefined {
  if (decidedOf(pod.metadata) !== undefined) return undefined;
  const { annotations = {} } = pod.metadata;
  const hasNetworks = [NETWORKS_ANNOTATION, NUMA_AFFINITY_ANNOTATION].some((name) => annotations[name] !== undefined);
  if (hasNetworks && isExclusive(needs) && needs.networks.length === 0) {
    return ['NotDecided', 'it has no decision annotation, so nothing keeps it near its networks'];
  }
  if (annotations[CPU_MASK_ANNOTATION] === undefined || pod.status?.phase === 'Running') return undefined;
  return ['NotDecided', 'it has no decision annotation, so its CPU mask is not checked'];
}

/** Plumbline's own scheduler calls the extender for each of its pods; without it, the cluster's does for every pod. */
function unasked(facts: VmFacts, pod: PodShape): Cause[] {
  const scheduler = schedulerOf(pod);
  if (scheduler === SCHEDULER || pod.spec.nodeName || facts.scheduler?.leads !== true) return [];
  const help =
    recognizeLauncher(pod).kind === 'launcher'
      ? startAgain(facts, 'remove schedulerName from the VM’s template and start the VM again')
      : remedy('name-scheduler', `create the pod again with schedulerName: ${SCHEDULER}`);
  const reason = scheduler === DEFAULT_SCHEDULER ? 'ExtenderNotAsked' : 'OtherScheduler';
  return [cause(reason, `its scheduler is ${scheduler}, which does not call the extender`, help)];
}
