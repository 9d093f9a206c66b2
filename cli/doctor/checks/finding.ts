import type { Reason } from '../../../diagnosis/reasons.ts';
import { type Command, kubectl, type Remedy } from '../../../diagnosis/remedies.ts';
import { NAMESPACE, WEBHOOK_REQUIRED } from '../../../model/names.ts';
import type { Read } from '../../support/lists.ts';

/** The areas, selected by name. `preflight` is for use before an installation, and runs only on request. */
export const AREAS = [
  'preflight',
  'installed',
  'webhook',
  'certificates',
  'extender',
  'agents',
  'kubelet',
  'networks',
  'interference',
  'dpu',
  'pods',
] as const;
export type Area = (typeof AREAS)[number];

type Severity = 'error' | 'warning';

export interface DoctorFinding {
  readonly area: Area;
  readonly severity: Severity;
  readonly what: string;
  readonly impact: string;
  readonly fix: Fix;
  readonly meanwhile?: Fix | undefined;
  readonly objects?: readonly string[] | undefined;
  readonly cause?: SharedCause | undefined;
  readonly state?: FindingState | undefined;
  readonly consequences?: readonly string[] | undefined;
}

/** `webhook-away` follows from `certificate` if both are found; states of VMs follow from the last two. */
export type SharedCause =
  | 'not-installed'
  | 'certificate'
  | 'webhook-away'
  | 'scheduler-away'
  | 'extender-away'
  | 'not-routed'
  | 'bad-report'
  | 'agent-away'
  | 'dpu-dead';

interface FindingState {
  readonly reason: Reason;
  readonly remedies: readonly Remedy[];
  readonly nodes: readonly string[];
}

type FindingDetails = Pick<DoctorFinding, 'meanwhile' | 'objects' | 'cause' | 'state'>;

export interface AreaReport {
  readonly area: Area;
  readonly findings: readonly DoctorFinding[];
  readonly seen: readonly string[];
  readonly unseen: readonly string[];
}

export type Fix = Pick<Remedy, 'text' | 'commands'>;

export const fix = (text: string, ...commands: readonly Command[]): Fix => ({ text, commands });

export const inSystem = (...args: readonly string[]): Command => kubectl('-n', NAMESPACE, ...args);

export const BREAK_GLASS = fix(
  'if VMs must start before it is fixed, without Plumbline, switch its webhooks off',
  inSystem('delete', 'rolebinding', WEBHOOK_REQUIRED),
);

/** The details of a finding about these objects. */
export const affecting = (kind: string, names: readonly string[], more: FindingDetails = {}): FindingDetails => {
  return { objects: names.map((name) => `${kind}/${name}`), ...more };
};

export const isReady = (conditions: readonly { readonly type: string; readonly status: string }[] | null | undefined) =>
  conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') === true;

/** The minor version of Kubernetes in `v1.36.2`. */
export function minorOf(version: string): number | undefined {
  const [, minor] = /^v?1\.(\d+)\b/.exec(version) ?? [];
  return minor === undefined ? undefined : Number(minor);
}

type Note = (what: string, impact: string, fix: Fix | string, more?: FindingDetails) => void;

export type AreaRecorder = ReturnType<typeof createAreaRecorder>;

/** The check of an area: `record` notes what it finds. */
export function areaCheck<Facts>(area: Area, record: (recorder: AreaRecorder, facts: Facts) => void) {
  return (facts: Facts): AreaReport => {
    const recorder = createAreaRecorder(area);
    record(recorder, facts);
    return recorder.report;
  };
}

export function createAreaRecorder(area: Area) {
  const findings: DoctorFinding[] = [];
  const seen: string[] = [];
  const unseen: string[] = [];
  const add =
    (severity: DoctorFinding['severity']): Note =>
    (what, impact, todo, more = {}) => {
      findings.push({ area, severity, what, impact, fix: typeof todo === 'string' ? fix(todo) : todo, ...more });
    };
  return {
    error: add('error'),
    warning: add('warning'),
    checked: (text: string) => void seen.push(text),
    notChecked: (text: string) => void unseen.push(text),
    /** The value, or undefined after a note that it could not be read. */
    value<T>(read: Read<T>, what: string): T | undefined {
      if (read.missing === undefined) return read.value;
      unseen.push(read.missing === 'forbidden' ? `${what} (you may not read them)` : `${what} (there are none)`);
      return undefined;
    },
    report: { area, findings, seen, unseen },
  };
}
