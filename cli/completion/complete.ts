import { writeSync } from 'node:fs';
import type { Command, Option } from 'commander';
import { printable } from '../../runtime/printable.ts';
import { KIND_WORDS } from '../explain/reference.ts';
import type { ClusterWords, Names } from './cluster-names.ts';

/** One candidate a line; nothing if the cluster does not answer. @param forKubectl ends with 4: no file names */
export async function complete(
  words: readonly string[],
  forKubectl: boolean,
  createProgram: (name: string, isMeant: (command: string) => boolean) => Promise<Command>,
): Promise<void> {
  // Loads only the command of these words: the names of the others are enough, and Tab must be fast.
  const meant = words.slice(0, -1).find((word) => !word.startsWith('-'));
  const program = await createProgram('plumbline', (command) => command === meant);
  // Most words need no cluster, and no time to load its client.
  const names: Names = async (kind, cluster) => {
    try {
      return await (await import('./cluster-names.ts')).namesOf(kind, cluster);
    } catch {
      return [];
    }
  };
  const candidates = (await candidatesFor(program, words, names)).filter(({ word }) => printable(word) === word);
  const lines = candidates.map(({ word, about }) =>
    about === '' ? word : `${word}\t${about.replaceAll(/\s+/g, ' ')}`,
  );
  print([...lines, ...(forKubectl ? [':4'] : [])].map((line) => `${line}\n`).join(''));
}

const STDOUT = 1;

/** Writes to the file descriptor, because the streams of Node.js take a twentieth of its start to load. */
function print(text: string): void {
  try {
    for (let rest = Buffer.from(text); rest.length > 0; ) rest = rest.subarray(writeSync(STDOUT, rest));
  } catch {
    // The shell no longer reads.
  }
}

interface Candidate {
  readonly word: string;
  readonly about: string;
}

const wordsOf = (words: readonly string[] = []): Candidate[] => words.map((word) => ({ word, about: '' }));

/** @param program with the subcommand loaded that the words name @param words the last one is being completed */
async function candidatesFor(program: Command, words: readonly string[], names: Names): Promise<Candidate[]> {
  const before = words.slice(0, -1);
  const current = words.at(-1) ?? '';
  const { command, operands, waiting } = walk(program, before);
  const candidates = async () => {
    if (waiting) return wordsOf(waiting.argChoices ?? (await valuesOf(waiting, clusterIn(before), names)));
    if (current.startsWith('-')) return optionsOf(command);
    return operandsOf(command, operands, { current, cluster: clusterIn(before) }, names);
  };
  return (await candidates()).filter(({ word }) => word.startsWith(current));
}

async function valuesOf({ long }: Option, cluster: ClusterWords, names: Names): Promise<readonly string[]> {
  if (long === '--namespace') return names('namespace', cluster);
  return long === '--context' ? names('context', cluster) : [];
}

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
    const sub = command.commands.find((command) => command.name() === word);
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
  { current, cluster }: { readonly current: string; readonly cluster: ClusterWords },
  names: Names,
): Promise<Candidate[]> {
  if (command.commands.length > 0) {
    return command.commands.map((sub) => ({ word: sub.name(), about: sub.summary() || sub.description() }));
  }
  const { registeredArguments: declared } = command;
  const argument = declared[operands.length] ?? (declared.at(-1)?.variadic ? declared.at(-1) : undefined);
  if (argument?.argChoices) return wordsOf(argument.argChoices);
  const named = async (kind: Parameters<Names>[0]) => wordsOf(await names(kind, cluster));
  if (argument?.name() === 'nodes' || argument?.name() === 'node') return named('node');
  if (argument?.name() === 'kind') {
    const [, kind] = /^(vm|vmi|pod)\//.exec(current) ?? [];
    if (kind === undefined) return wordsOf(KIND_WORDS);
    return wordsOf((await names(kind === 'pod' ? 'pod' : 'vm', cluster)).map((name) => `${kind}/${name}`));
  }
  if (argument?.name() === 'name') return named(operands[0] === 'pod' ? 'pod' : 'vm');
  return [];
}

function clusterIn(words: readonly string[]): ClusterWords {
  const flagValue = (...flags: readonly string[]) => {
    const at = words.findIndex((word) => flags.includes(word));
    if (at >= 0) return words[at + 1];
    return words.find((word) => flags.some((flag) => word.startsWith(`${flag}=`)))?.replace(/^[^=]*=/, '');
  };
  const namespace = flagValue('-n', '--namespace');
  return { namespace, kubeconfig: flagValue('--kubeconfig'), context: flagValue('--context') };
}
