/** A command that a user can run unchanged. `virtctl` is KubeVirt's. */
export interface Command {
  readonly program: 'kubectl' | 'plumbline' | 'virtctl' | 'helm' | 'npm';
  readonly args: readonly string[];
  /** What reads its output. */
  readonly into?: Command;
}

export interface Remedy {
  readonly id: string;
  readonly text: string;
  readonly commands: readonly Command[];
}

export const remedy = (id: string, text: string, ...commands: readonly Command[]): Remedy => ({ id, text, commands });

export const kubectl = (...args: readonly string[]): Command => ({ program: 'kubectl', args });
export const plumbline = (...args: readonly string[]): Command => ({ program: 'plumbline', args });
export const virtctl = (...args: readonly string[]): Command => ({ program: 'virtctl', args });

const PLAIN = /^[-\w./:=@,+%]+$/;

export const pipe = (from: Command, into: Command): Command => ({ ...from, into });

export function commandText({ program, args, into }: Command): string {
  const quoted = args.map((arg) => (PLAIN.test(arg) ? arg : `'${arg.replaceAll("'", String.raw`'\''`)}'`));
  return [program, ...quoted].join(' ') + (into === undefined ? '' : ` | ${commandText(into)}`);
}

export type RemedyLines = readonly [text: string, ...commands: string[]];

export function remedyLines({ text, commands }: Pick<Remedy, 'text' | 'commands'>): RemedyLines {
  return [text, ...commands.map(commandText)];
}

/** Whether it is for a VM that no migration moves yet: KubeVirt refuses a second one. */
export const migrates = ({ commands }: Remedy): boolean =>
  commands.some(({ program, args }) => program === 'virtctl' && args[0] === 'migrate');
