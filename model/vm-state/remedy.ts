/** A command that a user can run unchanged. `virtctl` is KubeVirt's. */
export interface Command {
  readonly program: 'kubectl' | 'plumbline' | 'virtctl';
  readonly args: readonly string[];
}

/** Advice about a state. */
export interface Remedy {
  /** Stable, one for each kind of advice. */
  readonly id: RemedyId;
  /** Text for people, without the commands. */
  readonly text: string;
  /** Commands that show or apply it, in the order to run them; empty if no command can. */
  readonly commands: readonly Command[];
}

export type RemedyId =
  | 'add-annotation'
  | 'ask-for-less'
  | 'ask-the-gate-keeper'
  | 'bring-cpus-online'
  | 'bring-dpu-back'
  | 'bring-node-back'
  | 'bring-scheduler-back'
  | 'bring-webhook-back'
  | 'check-agent'
  | 'check-extender'
  | 'check-network-name'
  | 'check-other-scheduler'
  | 'check-virt-controller'
  | 'correct-mask'
  | 'correct-vm'
  | 'dedicate-cpus'
  | 'delete-pod'
  | 'free-resources'
  | 'free-whole-cores'
  | 'look-at-successor'
  | 'look-at-volumes'
  | 'name-scheduler'
  | 'other-node'
  | 'place-again'
  | 'raise-limit-range'
  | 'raise-quota'
  | 'read-events'
  | 'relax-networks'
  | 'remove-what-denies-eviction'
  | 'remove-dra-driver'
  | 'reserve-cpus'
  | 'select-nodes'
  | 'set-cpu-manager'
  | 'set-kubelet'
  | 'start'
  | 'start-again'
  | 'tolerate'
  | 'uncordon'
  | 'unpause'
  | 'wait';

/** A remedy: its id for programs, its text for people, and commands in the order to run them. */
export const remedy = (id: RemedyId, text: string, ...commands: readonly Command[]): Remedy => ({ id, text, commands });

/** A command of kubectl. */
export const kubectl = (...args: readonly string[]): Command => ({ program: 'kubectl', args });
/** A command of plumbline. */
export const plumbline = (...args: readonly string[]): Command => ({ program: 'plumbline', args });
/** A command of virtctl. */
export const virtctl = (...args: readonly string[]): Command => ({ program: 'virtctl', args });

const PLAIN = /^[-\w./:=@,+%]+$/;

/** The command in shell syntax. */
export function commandText({ program, args }: Command): string {
  const quoted = args.map((arg) => (PLAIN.test(arg) ? arg : `'${arg.replaceAll("'", String.raw`'\''`)}'`));
  return [program, ...quoted].join(' ');
}

/** The remedy with its commands in one line. */
export function remedyText({ text, commands }: Pick<Remedy, 'text' | 'commands'>): string {
  if (commands.length === 0) return text;
  return `${text}: ${commands.map(commandText).join('; ')}`;
}
