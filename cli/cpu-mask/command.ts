import { Option } from 'commander';
import { MaskFormError, toLxc, toTaskset, toXen } from '../../model/cpu-mask/convert.ts';
import { type CpuMask, entryOf, formatMask, pinsNothing, summaryOf } from '../../model/cpu-mask/mask.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import { readVcpus, Subcommand } from '../support/command.ts';
import { readCpus, readMask } from '../support/cpus.ts';
import { CliError, EXIT, usageError } from '../support/exit-status.ts';
import { type OutputFormat, print } from '../support/output.ts';

interface Flags {
  readonly vcpus?: number;
  readonly online?: CpuSet;
  readonly reserved?: CpuSet;
  readonly fixCpuMismatch?: true;
  readonly to?: Form;
  readonly output?: OutputFormat;
}

const EXAMPLES = `
A mask has one entry for the whole VM, or one for each vCPU, separated by colons. An entry is "all", or CPU ids and ranges
separated by commas, such as 0-3,8.

Examples:
  plumbline cpu-mask parse 2,0-1:all:4,6-8             # 0-2:all:4,6-8
  plumbline cpu-mask explain 0-3:8 --vcpus 2 --online 0-7
  plumbline cpu-mask convert 1:3 --to taskset          # 0x00000002 and 0x00000008
  plumbline cpu-mask convert 1:2,4-7:0-1 --to xen      # cpus = [ "1", "2,4-7", "0-1" ]

Exit status: 0 done, 1 the mask does not match the vCPUs, the host or the form, 2 not a CPU mask.`;

const parseCommand = () =>
  new Subcommand('parse', 'Check a mask and print its canonical form.')
    .argument('<mask>', 'the mask', readMask)
    .withOutput('json', 'yaml')
    .action(async (mask: CpuMask, { output }: Flags) => {
      const data = { mask: formatMask(mask), entries: mask.entries.map(String), pinsNothing: pinsNothing(mask) };
      await print(output, data, { text: () => [data.mask] });
    });

const explainCommand = () =>
  new Subcommand('explain', 'Show the CPUs on which each vCPU may run, and which of them a host has.')
    .argument('<mask>', 'the mask', readMask)
    .option('--vcpus <number>', 'vCPUs of the VM, to check that the mask matches them', readVcpus)
    .option('--online <cpus>', 'online CPUs of a host, such as 0-3,8; default: check no host', readCpus)
    .option('--reserved <cpus>', 'reserved CPUs of the host, where no VM may run', readCpus)
    .option('--fix-cpu-mismatch', 'check as with the annotation plumbline.dev/fix-cpu-mismatch: "true"')
    .withOutput('json', 'yaml')
    .action(async (mask: CpuMask, flags: Flags) => {
      const { vcpus, online, reserved = CpuSet.EMPTY, fixCpuMismatch = false, output } = flags;
      const { explainMask, maskLines } = await import('./explain.ts');
      const explanation = explainMask({ mask, vcpus, online, reserved, fixMismatch: fixCpuMismatch });
      await print(output, explanation, { text: () => maskLines(explanation) });
      process.exitCode = explanation.problems.length === 0 ? EXIT.ok : EXIT.findings;
    });

export const FORMS = ['canonical', 'list', 'taskset', 'xen', 'lxc'] as const;

const convertCommand = () =>
  new Subcommand(
    'convert',
    'Convert a mask to another form: canonical; list, a line of CPUs for each vCPU; taskset, the same in hexadecimal; ' +
      'xen, a line for the domain configuration; lxc, the cpuset of a container. Prints nothing if the mask pins nothing.',
  )
    .argument('<mask>', 'the mask', readMask)
    .addOption(new Option('--to <form>', 'the form').choices(FORMS).makeOptionMandatory())
    .option('--vcpus <number>', 'vCPUs of the VM; default: as many as the mask has entries', readVcpus)
    .option('--online <cpus>', 'the CPUs that "all" stands for, such as 0-63', readCpus)
    .withOutput('json', 'yaml')
    .action(async (mask: CpuMask, { to: form = 'canonical', vcpus, online, output }: Flags) => {
      const lines = orFinding(() => convertMask({ mask, form, vcpus, online }));
      await print(output, { form, lines }, { text: () => lines });
    });

export const createCommand = () =>
  new Subcommand(
    'cpu-mask',
    'Check and convert CPU masks (annotation plumbline.dev/cpu-mask) without a cluster.',
    EXAMPLES,
  )
    .addCommand(parseCommand())
    .addCommand(explainCommand())
    .addCommand(convertCommand());

/** A mask that the form cannot express is not a usage error: the message says so. */
function orFinding<T>(convert: () => T): T {
  try {
    return convert();
  } catch (error) {
    if (error instanceof MaskFormError) throw new CliError(EXIT.findings, error.message, { cause: error });
    throw error;
  }
}
export type Form = (typeof FORMS)[number];

interface ConvertRequest {
  readonly mask: CpuMask;
  readonly form: Form;
  /** Undefined: as many as the mask has entries. */
  readonly vcpus: number | undefined;
  /** The CPUs that `all` stands for; undefined: unknown. */
  readonly online: CpuSet | undefined;
}

const hasAll = ({ entries }: CpuMask): boolean => entries.length === 0 || entries.includes('all');

const lineOf = (line: string | undefined): readonly string[] => (line === undefined ? [] : [line]);

/** One line for each vCPU, or one for the whole VM. @throws CliError (usage), MaskFormError */
export function convertMask({ mask, form, vcpus, online }: ConvertRequest): readonly string[] {
  const count = vcpus ?? Math.max(1, mask.entries.length);
  switch (form) {
    case 'canonical':
      return [formatMask(mask)];
    case 'list':
      return Array.from({ length: count }, (_, vcpu) => {
        const entry = entryOf(mask, vcpu) ?? 'all';
        return entry === 'all' ? (online ?? entry).toString() : entry.toString();
      });
    case 'taskset':
      if (online === undefined && hasAll(mask)) {
        throw usageError(`the mask ${formatMask(mask) || '(empty)'} contains "all": list those CPUs with --online`);
      }
      return toTaskset(mask, count, online ?? summaryOf(mask).cpus);
    case 'xen':
      return lineOf(toXen(mask, online));
    case 'lxc':
      if (vcpus === undefined) throw usageError('give the number of CPUs of the container with --vcpus');
      return lineOf(toLxc(mask, vcpus));
  }
}
