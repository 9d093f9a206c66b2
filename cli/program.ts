import { Command, CommanderError } from 'commander';
import packageJson from '../package.json' with { type: 'json' };
import { ArgumentError, EXIT, type ExitStatus } from './support/exit-status.ts';
import { outputWidth, printLines, printMessage } from './support/output.ts';
import { reflow } from './support/terminal.ts';

const AFTER = `
Exit status: 0 done, 1 done and something is wrong, 2 wrong flags or input, 3 the cluster cannot be queried,
4 the object does not exist. Also installed as a plugin: kubectl plumbline.`;

const SUMMARIES = {
  explain: 'show why a VM or pod does not run, node by node, and what would help',
  status: 'show the VMs that do not run and why, silent agents, dead DPUs, and wrong predictions',
  top: 'show the CPUs of each node and who owns them, as a map',
  console: 'serve a read-only web page: CPU maps of the nodes, and the VMs that wait',
  simulate: 'compute how many VMs fit on this cluster, or on hypothetical nodes',
  doctor: 'check the installation, and find what fails silently',
  topology: 'show the NUMA nodes, cores, caches and NICs of this machine',
  ovs: 'show where the threads of Open vSwitch run on a node',
  interference: 'show what interrupts and other work take from the VMs on a node',
  verify: 'show which nodes can host each VM with a CPU mask, and why others cannot',
  'cpu-mask': 'check CPU masks, and convert them for taskset, Xen and LXC',
  vm: 'show the threads of the VMs on a node, and the CPUs they should run on',
  qemu: 'pin the vCPUs of a QEMU process that runs without Kubernetes',
  'bug-report': 'write one archive for a bug report, without secrets and data of tenants',
  demo: 'run Plumbline in an embedded cluster',
  version: 'print the versions of this command and of the cluster’s parts',
  completion: 'print the completion script for bash, zsh or fish',
} as const;
type CommandName = keyof typeof SUMMARIES;

/** Loaded when called (all cost 0.1 s): `command.ts` has the flags, and imports `run.ts` lazily. */
const FILES: Readonly<Record<CommandName, () => Promise<{ createCommand(): Command }>>> = {
  explain: () => import('./explain/command.ts'),
  status: () => import('./status/command.ts'),
  top: () => import('./top/command.ts'),
  console: () => import('./console/command.ts'),
  simulate: () => import('./simulate/command.ts'),
  doctor: () => import('./doctor/command.ts'),
  topology: () => import('./topology/command.ts'),
  ovs: () => import('./ovs/command.ts'),
  interference: () => import('./interference/command.ts'),
  verify: () => import('./verify/command.ts'),
  'cpu-mask': () => import('./cpu-mask/command.ts'),
  vm: () => import('./vm/command.ts'),
  qemu: () => import('./qemu/command.ts'),
  'bug-report': () => import('./bug-report/command.ts'),
  demo: () => import('./demo/command.ts'),
  version: () => import('./version/command.ts'),
  completion: () => import('./completion/command.ts'),
};

const COMMANDS = Object.entries(SUMMARIES).map(([name, summary]) => {
  return { name, summary, load: async () => (await FILES[name as CommandName]()).createCommand() };
});

/** Only loads the meant subcommands. @param name `plumbline` or `kubectl plumbline` */
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
        writeOut: (text) => printLines(reflow(text.replace(/\n$/, '').split('\n'), outputWidth())),
      });
  }
  return program;
}

type CommandLineError = CommanderError & { readonly command: Command };

const nameOf = (command: Command): string =>
  command.parent === null ? command.name() : `${nameOf(command.parent)} ${command.name()}`;

function withSubcommands(command: Command): Command[] {
  return [command, ...command.commands.flatMap(withSubcommands)];
}

/** Never throws: an error is one line on standard error. @returns undefined: the command has set the status */
export async function runProgram(name: string, args: readonly string[]): Promise<ExitStatus | undefined> {
  const words = commandFirst(args);
  const [first = '', second = ''] = words.filter((arg) => !arg.startsWith('-'));
  const meant = first === 'help' ? second : first;
  const program = await createProgram(name, (command) => command === meant);
  let running = program;
  program.hook('preAction', (_, command) => {
    running = command;
  });
  try {
    if (first === 'help' && second !== '' && !COMMANDS.some((command) => command.name === second)) {
      throw new ArgumentError(`unknown command '${second}'`);
    }
    if (args.length === 0) {
      program.outputHelp();
      return EXIT.ok;
    }
    await program.parseAsync([...words], { from: 'user' });
    return undefined;
  } catch (error) {
    if (error instanceof CommanderError) return usageEnding(error as CommandLineError);
    // Loaded only here: most commands end without an error.
    const { endingOf } = await import('./support/errors.ts');
    const { line, status } = endingOf(error);
    printMessage(`plumbline: ${line}${error instanceof ArgumentError ? `; see ${nameOf(running)} --help` : ''}`);
    return status;
  }
}

/** Help and version end with 0; every other message of commander is a usage error. */
function usageEnding({ command, exitCode, message }: CommandLineError): ExitStatus {
  if (exitCode === 0) return EXIT.ok;
  const what = message.replace(/^error: /, '').replaceAll(/\s*\n\s*/g, ' ');
  const text = what === '(outputHelp)' ? 'a command is missing' : valueText(what);
  printMessage(`plumbline: ${text}; see ${nameOf(command)} --help`);
  return EXIT.usage;
}

const ARGUMENT = /^command-argument value '(?<value>.*)' is invalid for argument '(?<noun>[\w-]+?)s?'\. (?<why>.*)$/s;
const OPTION =
  /^option '(?:-\w, )?(?<flag>--[\w-]+) .(?<noun>[\w-]+).' argument '(?<value>.*)' is invalid\. (?<why>.*)$/s;

const EXCESS = /^too many arguments(?: for '.*')?\. Expected (?<limit>\d+) arguments? but got (?<count>\d+)\.$/;

function valueText(message: string): string {
  const { limit, count } = EXCESS.exec(message)?.groups ?? {};
  if (limit === '0') return 'it takes no arguments';
  if (limit !== undefined) return `it takes at most ${limit} arguments, got ${count}`;
  const { flag, noun, value, why = '' } = (ARGUMENT.exec(message) ?? OPTION.exec(message))?.groups ?? {};
  if (value === undefined) return message;
  const [, choices] = /^Allowed choices are (.*)\.$/.exec(why) ?? [];
  if (choices !== undefined) return `unknown ${noun} '${value}': use ${choices}`;
  return `${flag ?? noun} '${value}': ${why}`;
}

const CLUSTER_FLAG = /^(?:-n|--(?:kubeconfig|context|namespace|as|request-timeout))(?<value>=.*)?$/s;

function commandFirst(args: readonly string[]): readonly string[] {
  const flag = CLUSTER_FLAG.exec(args[0] ?? '');
  if (flag === null) return args;
  const words = flag.groups?.['value'] === undefined ? 2 : 1;
  return [...commandFirst(args.slice(words)), ...args.slice(0, words)];
}
