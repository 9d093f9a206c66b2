import { type Command, Option } from 'commander';

/** How a command prints: for people, or as data. */
export type OutputFormat = 'text' | 'wide' | 'name' | 'json' | 'yaml';

/**
 * Adds `-o, --output` with the formats that the command has in addition to its text, and `--json` where `legacyJson` is
 * set. The command then calls `print(flags.output, data, { text: …, wide: …, name: … })`.
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
  /** A name on each line, as kubectl writes it: `node/worker-1`. */
  readonly name?: () => readonly string[];
}

/** Writes the answer of a command to standard output. `data` is what scripts get; its fields are kept stable. */
export async function print(format: OutputFormat | undefined, data: unknown, texts: Texts): Promise<void> {
  switch (format ?? 'text') {
    case 'json':
      return write(`${JSON.stringify(data, null, 2)}\n`);
    case 'yaml': {
      const { stringify } = await import('./yaml.ts');
      // By way of JSON, so that both formats say the same of undefined and of sets.
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
