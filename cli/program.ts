import { Command, CommanderError } from 'commander';
import packageJson from '../package.json' with { type: 'json' };
import { COMMANDS } from './commands.ts';
import { EXIT, type ExitStatus } from './support/exit-status.ts';
import { printLines, printMessage } from './support/output.ts';

const AFTER = `
Exit status: 0 done, 1 done and something is wrong, 2 wrong flags or input, 3 the cluster cannot be queried,
4 the object does not exist. Also installed as a plugin: kubectl plumbline.`;

/**
 * Creates the program with its subcommands. It only loads the selected ones; of the others it only has the names.
 * @param name of the call: `plumbline` or `kubectl plumbline`
 * @param isMeant whether to load a subcommand
 */
export async function createProgram(name: string, isMeant: (command: string) => boolean): Promise<Command> {
  const program = new Command(name)
    .description('Align virtual machines on Kubernetes with the CPUs, NICs and DPUs of their hosts.')
    .version(packageJson.version, '-V, --version')
    .usage('<command> [options]')
    .addHelpText('after', AFTER);
  for (const entry of COMMANDS) {
    const command = isMeant(entry.name) ? await entry.load() : new Command(entry.name);
    program.addCommand(command.summary(entry.summary));
  }
  for (const command of withSubcommands(program)) {
    command
      .exitOverride((error) => {
        throw Object.assign(error, { command });
      })
      .showSuggestionAfterError()
      .configureOutput({
        outputError: () => undefined,
        writeErr: () => undefined,
        writeOut: (text) => printLines(text.replace(/\n$/, '').split('\n')),
      });
  }
  return program;
}

/** Ends the program; of the command whose arguments are wrong. */
type CommandLineError = CommanderError & { readonly command: Command };

/** With the names of the commands around it. */
const nameOf = (command: Command): string =>
  command.parent === null ? command.name() : `${nameOf(command.parent)} ${command.name()}`;

function withSubcommands(command: Command): Command[] {
  return [command, ...command.commands.flatMap(withSubcommands)];
}

/**
 * Runs a command line. Never throws: an error becomes one line on standard error.
 * @param args without node and program
 * @returns the exit status; undefined: the command has set it
 */
export async function runProgram(name: string, args: readonly string[]): Promise<ExitStatus | undefined> {
  const [first = '', second = ''] = args.filter((arg) => !arg.startsWith('-'));
  const meant = first === 'help' ? second : first;
  const program = await createProgram(name, (command) => command === meant);
  try {
    if (args.length === 0) {
      program.outputHelp();
      return EXIT.ok;
    }
    await program.parseAsync([...args], { from: 'user' });
    return undefined;
  } catch (error) {
    if (error instanceof CommanderError) return usageEnding(error as CommandLineError);
    // Loaded only here: most commands end without an error.
    const { endingOf } = await import('./support/errors.ts');
    const { line, status } = endingOf(error);
    printMessage(`plumbline: ${line}`);
    return status;
  }
}

/** Help and version end with 0; every other message of commander is a usage error. */
function usageEnding({ command, exitCode, message }: CommandLineError): ExitStatus {
  if (exitCode === 0) return EXIT.ok;
  const what = message.replace(/^error: /, '').replaceAll(/\s*\n\s*/g, ' ');
  printMessage(`plumbline: ${what === '(outputHelp)' ? 'a command is missing' : what}; see ${nameOf(command)} --help`);
  return EXIT.usage;
}
