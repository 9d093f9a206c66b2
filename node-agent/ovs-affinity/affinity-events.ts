import { type EventRecorder, type EventText, nodeTarget } from '../../kube/events.ts';
import { cut } from '../../model/errors.ts';

/** Seconds in which a message is sent only once, whatever its numbers: a node in trouble must not overload etcd. */
const SAME_WITHIN = 600;

/** Maximum number of remembered Events, and characters of each. The oldest is forgotten first. */
const REMEMBERED = 128;
const LONGEST = 1024;

/** Reports the state of Open vSwitch's affinity in Events of the node. */
export type AffinityEvents = ReturnType<typeof createAffinityEvents>;

export interface AffinityEventsDeps {
  readonly recorder: EventRecorder;
  readonly nodeName: string;
  /** Monotonic seconds. */
  readonly now: () => number;
}

/** Creates the reporter for one node. */
export function createAffinityEvents({ recorder, nodeName, now }: AffinityEventsDeps) {
  const announced = new Map<string, number>();
  const node = nodeTarget(nodeName);

  const warn = (reason: string, whole: string) => {
    const message = cut(whole, LONGEST);
    const key = `${reason} ${message.replaceAll(/\d+/g, '#')}`;
    for (const [known, at] of announced) if (now() - at >= SAME_WITHIN) announced.delete(known);
    if (announced.has(key)) return;
    announced.set(key, now());
    if (announced.size > REMEMBERED) announced.delete(announced.keys().next().value ?? '');
    recorder.record(node, { type: 'Warning', reason, message });
  };
  const note = (event: Omit<EventText, 'type'>) => recorder.record(node, { type: 'Normal', ...event });

  return {
    enabled: (file: string) =>
      note({ reason: 'OvsAffinityEnabled', message: `Open vSwitch runs on the CPUs without an owner (${file})` }),
    disabled: () =>
      note({ reason: 'OvsAffinityDisabled', message: 'the threads of Open vSwitch have their original CPUs again' }),
    /** Some threads are not on their CPUs. */
    incomplete: (problems: readonly string[]) => warn('OvsAffinityIncomplete', problems.join('; ')),
    /** Another process also sets the threads' CPUs. */
    contended: (problem: string) => warn('OvsAffinityContended', problem),
    /** The CPUs stay as they are because their owners are unknown. */
    held: (problems: readonly string[]) =>
      warn('OvsAffinityHeld', `Open vSwitch gets no more CPUs: ${problems.join('; ')}`),
    /** A container's start was refused because threads stayed on its CPUs. */
    notVacated: (problem: string) => warn('OvsNotVacated', problem),
  };
}
