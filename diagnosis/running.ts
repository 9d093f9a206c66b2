import { cpuListText, numaNodesText } from '../model/amounts.ts';
import { CpuSet, unionOf } from '../model/cpu-set.ts';
import { isWholeCores } from '../model/host.ts';
import { NAMESPACE, SCHEDULER } from '../model/names.ts';
import {
  cellsOfNetwork,
  type NetworkNeed,
  networkNeedText,
  type PlacementHost,
  type PlacementNeeds,
} from '../model/placement/needs.ts';
import { cellsTouched } from '../model/placement/networks.ts';
import { isExclusive } from '../model/placement/preferences.ts';
import { type Cause, cause, type InstanceFacts, type NodeStateFacts, type VmFacts } from './facts.ts';
import {
  bringDpuBack,
  bringSchedulerBack,
  checkAgent,
  correctMask,
  forgetRestart,
  kubectl,
  type Named,
  placeAgain,
  plumbline,
  type Remedy,
  remedy,
  repairNetworkMap,
  virtctl,
} from './remedies.ts';

export type RunningNeeds = Pick<PlacementNeeds, 'request' | 'networks' | 'mask' | 'spansCells'>;

/** Whether it is as promised, its network works, and where it runs. Facts that need no action come last. */
export function runningPod(facts: VmFacts, at: string, needs: RunningNeeds): Cause[] {
  return withDpu(facts, at, placed(facts, at, needs));
}

function withDpu(facts: Named & Pick<VmFacts, 'node' | 'instance'>, at: string, causes: readonly Cause[]): Cause[] {
  const { deadDpu, networkLost } = facts.node ?? {};
  if (deadDpu !== undefined) {
    const text = `on ${at}, whose DPU is not ready: ${deadDpu}; its network does not work until the DPU is back`;
    return [cause('DPUNotReady', text, bringDpuBack(at), placeAgain(facts)), ...causes];
  }
  if (networkLost === undefined) return [...causes];
  const text = `on ${at}, without a network since ${networkLost}`;
  return [cause('NetworkLost', text, placeAgain(facts), forgetRestart(at)), ...causes];
}

function placed(facts: VmFacts, at: string, needs: RunningNeeds): Cause[] {
  const { node } = facts;
  if (node === undefined) return [cause('Running', `on ${at}`)];
  if (needs.mask !== undefined) return byLastReport(node, at, [maskedVm(facts, at)]);
  if (!isExclusive(needs)) {
    const which = facts.instance?.hasCpusOfClaim ? 'with the CPUs of its claim' : 'on shared CPUs';
    return [cause('SharedCpus', `on ${at}, ${which}`)];
  }
  const { host, assigned } = node;
  if (host === undefined || assigned.length === 0) {
    return [cause('NotReported', `on ${at}; no agent reports its CPUs`, checkAgent(at))];
  }
  return byLastReport(node, at, aligned(facts, at, needs, host, assigned));
}

const agentSilent = (at: string) => cause('AgentSilent', `on ${at}, whose agent has stopped reporting`, checkAgent(at));

/** Marks what a silent agent reported as old. */
function byLastReport({ silent }: NodeStateFacts, at: string, causes: readonly Cause[]): Cause[] {
  if (!silent) return [...causes];
  return [agentSilent(at), ...causes.map((each) => ({ ...each, text: `by its last report, ${each.text}` }))];
}

function aligned(
  facts: VmFacts,
  at: string,
  needs: RunningNeeds,
  { host, networks }: PlacementHost,
  assigned: readonly string[],
): Cause[] {
  const cpus = unionOf(assigned.map((list) => CpuSet.parse(list)));
  const cells = cellsTouched(host, cpus);
  const fault = facts.node?.networkMapFault;
  // A new start on a node whose networks are not known would be worse.
  const remedies = fault === undefined ? [placeAgain(facts)] : [repairNetworkMap(at, fault)];
  const location = { at, networks, fault, touched: CpuSet.of(cells), spansCells: needs.spansCells };
  const faults = needs.networks.flatMap((need) => farFrom(need, location, remedies));
  if (!isWholeCores(host, cpus)) {
    const split = `its ${cpuListText(cpus)} ${cpus.size === 1 ? 'is' : 'are'} not whole cores`;
    faults.unshift(cause('SplitCores', `${split}: it shares cores with other pods`, ...remedies));
  }
  const percent = facts.node?.interferencePercent;
  const shareText = percent === undefined ? '' : `; interrupts and other work take ${percent} % of them`;
  const where = cause('Aligned', `on ${at}, ${cpuListText(cpus)} of ${numaNodesText(cells.join(','))}${shareText}`);
  if (faults.length > 0) return [...faults, where];
  const near = needs.networks.length === 0 ? '' : ', and is near its networks';
  return [where, cause('Aligned', `it shares no core with other pods${near}`)];
}

interface CpuLocation {
  readonly at: string;
  readonly networks: PlacementHost['networks'];
  /** Why the node's network map is not used. */
  readonly fault: string | undefined;
  /** NUMA nodes of the CPUs. */
  readonly touched: CpuSet;
  readonly spansCells: boolean | undefined;
}

function farFrom(need: NetworkNeed, location: CpuLocation, remedies: readonly Remedy[]): Cause[] {
  const { at, networks, fault, touched, spansCells } = location;
  const there = cellsOfNetwork(networks, need);
  const what = networkNeedText(need);
  if (fault !== undefined && (there === undefined || there.isEmpty)) {
    const reason = there === undefined ? 'NetworkGone' : 'NetworkUnplaced';
    return [cause(reason, `${what}: the network map of ${at} is broken: ${fault}`, ...remedies)];
  }
  if (there === undefined) {
    const say = `make ${at} report it again, and leave the VM running meanwhile: a restart would not bring the network back`;
    const help = remedy('bring-network-back', say, plumbline('doctor', 'networks', 'agents'));
    return [cause('NetworkGone', `${what} is not on the node`, help)];
  }
  if (there.isEmpty) {
    const say = `name its NUMA node on ${at} in the network map`;
    const help = remedy('check-network-name', say, plumbline('doctor', 'networks'));
    return [cause('NetworkUnplaced', `${what}: its NUMA node is unknown`, help)];
  }
  if (spansCells ? touched.intersects(there) : touched.isSubsetOf(there)) return [];
  const text = `${what} is on ${numaNodesText(there)}, its CPUs are on ${touched}`;
  return [cause('NetworkElsewhere', text, ...remedies)];
}

function maskedVm(facts: Named & Pick<VmFacts, 'node'>, at: string): Cause {
  const { pinning } = facts.node ?? {};
  const about = pinning?.message === undefined ? '' : `: ${pinning.message}`;
  if (pinning?.state === 'pinned') {
    const pinned = `on ${at}, its vCPUs pinned by its CPU mask`;
    return about === '' ? cause('MaskApplied', pinned) : cause('MaskFellBack', `${pinned}, with deviations${about}`);
  }
  const text = `on ${at}, and its CPU mask is not applied${about}`;
  if (pinning !== undefined) return cause('MaskNotApplied', text, correctMask(facts));
  return cause('MaskNotReported', `${text}: its agent has not reported`, checkAgent(at));
}

type PausedVmFacts = Named & Pick<VmFacts, 'node' | 'instance' | 'scheduler' | 'now'>;

/** A VM whose guest is paused; the most important fact first. */
export function pausedGuest(facts: PausedVmFacts, at: string, pause: NonNullable<InstanceFacts['pause']>): Cause[] {
  const paused = pausedVm(facts, at, pause);
  if (facts.node?.silent !== true || !pause.atStart) return [paused];
  if (facts.node.pinning === undefined) return [paused, agentSilent(at)];
  return byLastReport(facts.node, at, [paused]).reverse();
}

function pausedVm(facts: PausedVmFacts, at: string, pause: NonNullable<InstanceFacts['pause']>): Cause {
  const { node } = facts;
  if (pause.atStart && node !== undefined) return beforePinning(facts, node, at, pause.since);
  const text = `it is on ${at} and does not run${pause.text === '' ? '' : `: ${pause.text}`}`;
  const { name, namespace } = facts;
  const unpause = virtctl('unpause', 'vmi', name, '-n', namespace);
  return cause('Paused', text, remedy('unpause', 'resume it, unless the pause is intended', unpause));
}

/** Seconds from the pause after which the agent or the extender is at fault: together they need a few. */
const START_SECONDS = 60;

const waitFor = (text: string, area: string) => remedy('wait', text, plumbline('doctor', area));
const LOGS = ['-n', NAMESPACE, 'logs', '-l', `app.kubernetes.io/name=${SCHEDULER}`];
const READ_LOG = remedy(
  'read-extender-log',
  'read in its log why the extender cannot resume it',
  kubectl(...LOGS, '-c', 'extender', '--prefix', '--tail=-1'),
  plumbline('doctor', 'extender'),
);

function beforePinning(facts: PausedVmFacts, { pinning, silent }: NodeStateFacts, at: string, since: string): Cause {
  const waits = `it is on ${at} and does not run until its vCPUs are pinned`;
  const pausedSeconds = ((facts.now ?? Number.NaN) - Date.parse(since)) / 1000;
  if (pinning === undefined) {
    const missing = `${waits}; its agent has not reported yet`;
    if (pausedSeconds <= START_SECONDS && !silent) {
      const wait = 'the agent pins it within seconds; if it stays paused, check the agent';
      return cause('Starting', missing, waitFor(wait, 'agents'));
    }
    const check = `check whether the agent on ${at} runs and has found its QEMU`;
    const commands = [plumbline('doctor', 'agents'), plumbline('vm', 'status', at)];
    return cause('PinningNotReported', missing, remedy('check-agent', check, ...commands));
  }
  if (pinning.state !== 'pinned') {
    const { reason = '', message = '' } = pinning;
    const text = `${waits}; its agent refuses the mask (${reason}): ${message}`;
    return cause('PinningRefused', text, correctMask(facts));
  }
  const pinned = `it is on ${at}, its vCPUs are pinned`;
  const { away, extenderAway = away } = facts.scheduler ?? {};
  if (extenderAway !== undefined) {
    return cause('ExtenderAway', `${pinned}, but nothing resumes it: ${extenderAway}`, bringSchedulerBack());
  }
  if (pausedSeconds > START_SECONDS) {
    const minutes = Math.floor(pausedSeconds / 60);
    return cause('NotResumed', `${pinned}, and the extender has not resumed it; paused for ${minutes} min`, READ_LOG);
  }
  const wait = 'the extender resumes it within seconds; if it stays paused, check the extender';
  return cause('AboutToResume', `${pinned}, and the extender has not resumed it yet`, waitFor(wait, 'extender'));
}
