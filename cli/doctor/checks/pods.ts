import { ParseError } from '../../../model/errors.ts';
import { type MaskRequest, maskRequestOf } from '../../../model/launcher/mask-request.ts';
import { startsRunning } from '../../../model/launcher/paused-start.ts';
import { CPU_MASK_START_ANNOTATION } from '../../../model/names.ts';
import { bypassesOf } from '../../explain/asks.ts';
import { type ExplainedPod, type Occurrence, timeOf } from '../../explain/objects.ts';
import { REJECTIONS } from '../../explain/rejections.ts';
import { runningPod } from '../../explain/running.ts';
import type { Facts } from '../facts/facts.ts';
import { type AreaReport, count, some } from './finding.ts';
import { createNotebook, type Notebook } from './notebook.ts';

/** Launchers that Plumbline never saw, that a kubelet rejected, or that run crooked; and nodes that take none. */
export function checkPods(facts: Facts): AreaReport {
  const { launchers, topologies, nodes, cannotEvict, rejections } = facts;
  const notes = createNotebook('pods');
  const all = notes.value(launchers, 'launchers') ?? [];
  const live = all.filter(({ status }) => !['Failed', 'Succeeded'].includes(status?.phase ?? ''));
  const bypassed = live.filter((pod) => bypassesOf(pod).some(({ cause }) => cause.startsWith('the webhook')));
  if (bypassed.length > 0) {
    notes.error(
      `the webhook did not see ${count(bypassed.length, 'launcher')}: ${some(named(bypassed))}`,
      'they are unpadded: full-pcpus-only nodes reject them',
      'once the webhook works, start these VMs anew',
      objects(bypassed),
    );
  }
  noteRejected(notes, all, rejections.value ?? []);
  noteStuck(notes, live, cannotEvict.value ?? []);
  const reports = new Map((topologies.value ?? []).map((one) => [one.metadata.name ?? '', one]));
  const crooked = live.filter((pod) => {
    const { help = [], causes = [] } =
      pod.status?.phase === 'Running' ? runningPod(pod, reports.get(pod.spec.nodeName ?? '')) : {};
    return help.length > 0 && causes.length > 0;
  });
  if (crooked.length > 0) {
    notes.warning(
      `${count(crooked.length, 'launcher')} on shared cores or away from a network: ${some(named(crooked))}`,
      'they are slower than they were promised to be',
      'migrate or restart these VMs; plumbline explain pod says what is crooked',
      objects(crooked),
    );
  }
  notes.seen(count(live.length, 'launcher'));
  noteLateMasks(notes, live);
  const cordoned = nodes.filter(({ spec }) => spec?.unschedulable === true).map(({ metadata }) => metadata.name ?? '');
  if (cordoned.length > 0) {
    notes.warning(
      `${count(cordoned.length, 'node')} cordoned off: ${some(cordoned)}`,
      'no new VM goes there',
      `kubectl uncordon ${cordoned.slice(0, 3).join(' ')}, once they may`,
      cordoned.map((name) => `node/${name}`),
    );
  }
  return notes.report;
}

/** Launchers that failed at their kubelet, and those of which KubeVirt has left an Event alone. */
function noteRejected(notes: Notebook, all: readonly ExplainedPod[], events: readonly Occurrence[]): void {
  const failed = all.filter(({ status }) => status?.phase === 'Failed' && REJECTIONS.includes(status.reason ?? ''));
  const gone = events
    .map(({ reason, involvedObject: { namespace, name } }) => ({ reason, pod: `${namespace}/${name}` }))
    .filter(({ pod }) => pod.includes(LAUNCHER));
  const pods = [...new Set([...named(failed), ...gone.map(({ pod }) => pod)])];
  if (pods.length === 0) return;
  const reasons = [...new Set([...failed.map(({ status }) => status?.reason), ...gone.map(({ reason }) => reason)])];
  notes.warning(
    `kubelets have rejected ${count(pods.length, 'launcher')} (${reasons.join(', ')}): ${some(pods)}`,
    'they were placed where their kubelet could not take them; KubeVirt deletes them and starts others, each after a longer pause',
    'plumbline explain vm says why for each; does kube-scheduler ask the extender?',
    pods.map((name) => `pod/${name}`),
  );
}

/** How KubeVirt begins their names. */
const LAUNCHER = '/virt-launcher-';

/** VMs that ran for a moment before their mask was set, by their user's choice. */
function noteLateMasks(notes: Notebook, live: readonly ExplainedPod[]): void {
  const late = live.filter(({ metadata }) => startsRunning(metadata) && readMask(metadata) !== undefined);
  if (late.length === 0) return;
  const how = `after ${late.length === 1 ? 'it starts' : 'they start'} (${CPU_MASK_START_ANNOTATION}: running)`;
  notes.seen(`${count(late.length, 'VM')} whose CPU mask is set ${how}: ${some(named(late))}`);
}

/** A mask that cannot be read is none here: its VM does not start, and explain says why. */
function readMask(metadata: ExplainedPod['metadata']): MaskRequest | undefined {
  try {
    return maskRequestOf(metadata);
  } catch (error) {
    if (error instanceof ParseError) return undefined;
    throw error;
  }
}

/** Launchers that cannot start where they are bound, and that the API server does not let the extender remove. */
function noteStuck(notes: Notebook, live: readonly ExplainedPod[], events: readonly Occurrence[]): void {
  const latest = new Map([...events].sort((a, b) => timeOf(a) - timeOf(b)).map((one) => [one.involvedObject.uid, one]));
  const stuck = live.filter(({ metadata, status }) => status?.phase !== 'Running' && latest.has(metadata.uid));
  if (stuck.length === 0) return;
  const said = latest.get(stuck[0]?.metadata.uid)?.message ?? '';
  notes.error(
    `${count(stuck.length, 'launcher')} that cannot start and cannot be evicted: ${some(named(stuck))}`,
    `they hold their places; the first: ${said}`,
    'remove what the Event CannotEvict names (a disruption budget, an admission webhook), or delete these pods',
    objects(stuck),
  );
}

const named = (pods: readonly ExplainedPod[]) => pods.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`);
const objects = (pods: readonly ExplainedPod[]) => named(pods).map((name) => `pod/${name}`);
