import type { Command, Option } from 'commander';
import { KIND_WORDS } from '../explain/reference.ts';

/** A word that may be inserted at the cursor, and its meaning. */
export interface Candidate {
  readonly word: string;
  readonly about: string;
}

/** Names from the cluster, read only where a name is a candidate. */
export type Names = (kind: 'vm' | 'pod' | 'node', namespace: string | undefined) => Promise<readonly string[]>;

/**
 * The candidates for the last word, which may be incomplete.
 * @param program with the subcommand loaded that the words name
 * @param words after the program's name, the last one being completed
 */
export async function candidatesFor(program: Command, words: readonly string[], names: Names): Promise<Candidate[]> {
  const before = words.slice(0, -1);
  const current = words.at(-1) ?? '';
  const { command, operands, waiting } = walk(program, before);
  const found = waiting
    ? (waiting.argChoices ?? []).map((word) => ({ word, about: '' }))
    : current.startsWith('-')
      ? optionsOf(command)
      : await operandsOf(command, operands, namespaceIn(before), names);
  return found.filter(({ word }) => word.startsWith(current));
}

/** Finds the command that the words name, its operands, and a trailing flag that still needs a value. */
function walk(program: Command, words: readonly string[]) {
  let command = program;
  let waiting: Option | undefined;
  const operands: string[] = [];
  for (const word of words) {
    if (waiting) {
      waiting = undefined;
      continue;
    }
    if (word.startsWith('-')) {
      const option = command.options.find(({ short, long }) => short === word || long === word);
      waiting = option?.required ? option : undefined;
      continue;
    }
    const sub = command.commands.find((one) => one.name() === word);
    if (sub && operands.length === 0) command = sub;
    else operands.push(word);
  }
  return { command, operands, waiting };
}

function optionsOf(command: Command): Candidate[] {
  const options = command.options.filter(({ hidden }) => !hidden);
  return [
    ...options.map(({ long, short, description }) => ({ word: long ?? short ?? '', about: description })),
    { word: '--help', about: 'display help for command' },
  ];
}

async function operandsOf(
  command: Command,
  operands: readonly string[],
  namespace: string | undefined,
  names: Names,
): Promise<Candidate[]> {
  if (command.commands.length > 0) {
    return command.commands.map((one) => ({ word: one.name(), about: one.summary() || one.description() }));
  }
  const { registeredArguments: declared } = command;
  const argument = declared[operands.length] ?? (declared.at(-1)?.variadic ? declared.at(-1) : undefined);
  if (argument?.argChoices) return argument.argChoices.map((word) => ({ word, about: '' }));
  const named = async (kind: Parameters<Names>[0]) => {
    return (await names(kind, namespace)).map((word) => ({ word, about: '' }));
  };
  if (argument?.name() === 'nodes' || argument?.name() === 'node') return named('node');
  if (argument?.name() === 'kind') return KIND_WORDS.map((word) => ({ word, about: '' }));
  if (argument?.name() === 'name') return named(operands[0] === 'pod' ? 'pod' : 'vm');
  return [];
}

function namespaceIn(words: readonly string[]): string | undefined {
  const at = words.findIndex((word) => word === '-n' || word === '--namespace');
  return at < 0 ? words.find((word) => word.startsWith('--namespace='))?.split('=')[1] : words[at + 1];
}
