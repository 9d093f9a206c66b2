import type { EventRecorder, EventText } from '../../kube/events.ts';
import { cut } from '../../model/brief.ts';

/**
 * Seconds in which the same message is sent once, whatever numbers are in it: a node in trouble must not overload etcd.
 */
const SAME_WITHIN = 600;

/** Different Events that are remembered, and characters of one. The oldest is forgotten first. */
const REMEMBERED = 128;
const LONGEST = 1024;

/** Reports the state of Open vSwitch's affinity in Events of the node. */
export interface AffinityEvents {
  enabled(enablerFile: string): void;
  disabled(): void;
  /** Not every thread is on its CPUs. */
  incomplete(problems: readonly string[]): void;
  /** Another process sets the threads' CPUs too. */
  contended(problem: string): void;
  /** The CPUs stay as they are, since their owners are unknown. */
  held(problems: readonly string[]): void;
  /** A container's start was refused, since threads stayed on its CPUs. */
  notVacated(problem: string): void;
}

export interface AffinityEventsDeps {
  readonly recorder: EventRecorder;
  readonly nodeName: string;
  /** Monotonic seconds. */
  readonly now: () => number;
}

/** Creates the reporter for one node. */
export function createAffinityEvents({ recorder, nodeName, now }: AffinityEventsDeps): AffinityEvents {
  const told = new Map<string, number>();
  // Events on nodes use the node's name as the uid, as the kubelet's do: `kubectl describe node` looks for that.
  const node = { apiVersion: 'v1', kind: 'Node', name: nodeName, uid: nodeName };

  const warn = (reason: string, whole: string) => {
    const message = cut(whole, LONGEST);
    const key = `${reason} ${message.replaceAll(/\d+/g, '#')}`;
    for (const [known, at] of told) if (now() - at >= SAME_WITHIN) told.delete(known);
    if (told.has(key)) return;
    told.set(key, now());
    if (told.size > REMEMBERED) told.delete(told.keys().next().value ?? '');
    recorder.record(node, { type: 'Warning', reason, message });
  };
  const note = (event: Omit<EventText, 'type'>) => recorder.record(node, { type: 'Normal', ...event });

  return {
    enabled: (file) =>
      note({ reason: 'OvsAffinityEnabled', message: `Open vSwitch follows the CPUs without an owner (${file})` }),
    disabled: () =>
      note({ reason: 'OvsAffinityDisabled', message: 'the threads of Open vSwitch have their original CPUs again' }),
    incomplete: (problems) => warn('OvsAffinityIncomplete', problems.join('; ')),
    contended: (problem) => warn('OvsAffinityContended', problem),
    held: (problems) => warn('OvsAffinityHeld', `Open vSwitch takes no further CPUs: ${problems.join('; ')}`),
    notVacated: (problem) => warn('OvsNotVacated', problem),
  };
}
