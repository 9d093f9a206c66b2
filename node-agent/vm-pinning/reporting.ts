import { type EventRecorder, nodeTarget } from '../../kube/events.ts';
import type { Overlap } from '../../model/cpu-mask/host-pins.ts';
import { cut } from '../../model/errors.ts';
import { vmiObject } from '../../model/launcher/recognize.ts';
import type { Logger } from '../../runtime/log.ts';
import type { AgentMetrics } from '../telemetry/metrics.ts';
import type { LauncherView } from './launcher-pinning.ts';
import type { Launcher } from './launchers.ts';
import { pinsText } from './status.ts';

export interface ReportingDeps {
  readonly events: EventRecorder;
  readonly nodeName: string;
  readonly log: Logger;
  readonly metrics: AgentMetrics;
}

const STATES = ['pinned', 'unpinned', 'refused'] as const;
/** Maximum characters of a message, which is stored, compared at each check, logged and sent. */
const LONGEST = 1024;
/** Maximum overlaps in one Event. */
const NAMED = 8;

const REASONS = {
  pinned: 'CPUMaskApplied',
  refused: 'CPUMaskRefused',
  unpinned: 'CPUMaskNotApplied',
} as const;

/** The Event for each reason why a mask is applied, but not as written. */
const REMARKS = new Map([
  ['FellBack', 'CPUMaskFellBack'],
  ['OtherVCPUs', 'CPUMaskOtherVCPUs'],
]);

/** Reports the state of each VM once, on the VM itself, and updates the metrics. */
export function createReporting({ events, nodeName, log, metrics }: ReportingDeps) {
  const reported = new Map<string, string>();
  let overlapsTold = '';

  const isNews = (key: string, text: string): boolean => {
    if ((reported.get(key) ?? '') === text) return false;
    reported.set(key, text);
    return true;
  };

  const record = ({ namespace, vmi }: Launcher, type: 'Normal' | 'Warning', reason: string, message: string) => {
    events.record(vmiObject(namespace, vmi), { type, reason, message });
    log[type === 'Normal' ? 'info' : 'warn']({ namespace, vmi: vmi.name, reason, message }, 'virtual machine');
  };

  const tellMask = (view: LauncherView) => {
    const { launcher, mask } = view;
    if (mask === undefined) return;
    const { state, reason, message = '' } = mask;
    const text = cut(state === 'pinned' ? pinsText(view) : message, LONGEST);
    if (!isNews(`${launcher.uid} mask`, `${state} ${reason} ${text}`)) return;
    const remark = state === 'pinned' ? REMARKS.get(reason ?? '') : undefined;
    if (remark !== undefined) record(launcher, 'Warning', remark, cut(message, LONGEST));
    else record(launcher, state === 'pinned' ? 'Normal' : 'Warning', REASONS[state], text);
  };

  const tellHousekeeping = ({ launcher, housekeeping }: LauncherView) => {
    if (housekeeping === undefined) return;
    const { problems, emulator } = housekeeping;
    if (isNews(`${launcher.uid} emulator`, String(emulator))) {
      const { namespace, vmi } = launcher;
      log.info({ namespace, vmi: vmi.name, emulator }, 'moved emulator threads');
    }
    const text = cut(problems.join('; '), LONGEST);
    if (isNews(`${launcher.uid} housekeeping`, text) && text !== '') {
      record(launcher, 'Warning', 'HousekeepingIncomplete', text);
    }
  };

  return {
    views(views: readonly LauncherView[]): void {
      for (const view of views) {
        tellMask(view);
        tellHousekeeping(view);
        metrics.vmThreadMoves.inc({ cause: 'mask' }, view.mask?.moved ?? 0);
        metrics.vmThreadMoves.inc({ cause: 'housekeeping' }, view.housekeeping?.repairs ?? 0);
      }
      for (const state of STATES) {
        metrics.vmPinning.set({ state }, views.filter(({ mask }) => mask?.state === state).length);
      }
      const kept = views.filter(({ housekeeping }) => housekeeping !== undefined);
      const failing = kept.filter(({ housekeeping }) => housekeeping?.problems.length !== 0).length;
      metrics.vmHousekeeping.set({ state: 'kept' }, kept.length - failing);
      metrics.vmHousekeeping.set({ state: 'incomplete' }, failing);
    },

    /** Reports overlaps on the node, because only its administrator sees the VMs of all namespaces. */
    overlaps(found: readonly Overlap<LauncherView>[]): void {
      metrics.vmMaskOverlaps.set(found.length);
      const nameOf = ({ launcher: { namespace, vmi } }: LauncherView) => `${namespace}/${vmi.name}`;
      const texts = found.slice(0, NAMED).map(({ a, b, cpus }) => `${nameOf(a)} and ${nameOf(b)} on ${cpus.brief}`);
      const text = texts.join('; ') + (found.length > NAMED ? `; and ${found.length - NAMED} more` : '');
      if (text === overlapsTold) return;
      overlapsTold = text;
      if (text === '') return;
      events.record(nodeTarget(nodeName), {
        type: 'Warning',
        reason: 'CPUMasksOverlap',
        message: `virtual machines share CPUs: ${text}`,
      });
    },

    forget(uid: string): void {
      for (const what of ['mask', 'emulator', 'housekeeping']) reported.delete(`${uid} ${what}`);
    },
  };
}
