import { type Command, Option } from 'commander';
import { CpuSet } from '../../model/cpu-set.ts';

/** Output formats of a command. */
export type OutputFormat = 'text' | 'wide' | 'name' | 'json' | 'yaml';

/**
 * Adds `-o, --output` with the formats that the command supports in addition to text. The command then calls `print(flags.output, data, { text: …, wide: …, name: … })`.
 */
export function withOutput(command: Command, formats: readonly Exclude<OutputFormat, 'text'>[]): Command {
  const option = new Option('-o, --output <format>', `output format instead of text: ${formats.join(', ')}`).choices(
    formats,
  );
  return command.addOption(option);
}

export interface Texts {
  readonly text: () => readonly string[];
  readonly wide?: () => readonly string[];
  /** One name per line, in kubectl's notation: `node/worker-1`. */
  readonly name?: () => readonly string[];
}

/** Writes the result of a command to standard output. `data` is for scripts; its fields are stable. */
export async function print(format: OutputFormat | undefined, data: unknown, texts: Texts): Promise<void> {
  switch (format ?? 'text') {
    case 'json':
      return write(`${JSON.stringify(data, null, 2)}\n`);
    case 'yaml': {
      const { stringify } = await import('./yaml.ts');
      // Converted through JSON, so that both formats treat undefined and sets the same.
      return write(stringify(JSON.parse(JSON.stringify(data)), { lineWidth: 0, aliasDuplicateObjects: false }));
    }
    case 'name':
      return writeLines((texts.name ?? texts.text)());
    case 'wide':
      return writeLines((texts.wide ?? texts.text)());
    case 'text':
      return writeLines(texts.text());
  }
}

function writeLines(lines: readonly string[]): void {
  write(lines.length === 0 ? '' : `${lines.join('\n')}\n`);
}

function write(text: string): void {
  process.stdout.write(text);
}

/** CPUs of a list, as in /sys, by number. @throws ParseError */
export function numbersOf(list: string): number[] {
  return CpuSet.parse(list).toArray();
}
