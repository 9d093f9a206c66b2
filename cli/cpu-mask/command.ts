import { Command, Option } from 'commander';
import { MaskFormError } from '../../model/cpu-mask/convert.ts';
import { formatMask, pinsNothing } from '../../model/cpu-mask/mask.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import { CliError, EXIT } from '../support/exit-status.ts';
import { type OutputFormat, print, withOutput } from '../support/output.ts';
import { readCpus, readMask, readVcpus } from './arguments.ts';
import { convertMask, FORMS, type Form } from './convert.ts';
import { explainMask, explanationLines } from './explain.ts';

interface Flags {
  readonly vcpus?: number;
  readonly online?: CpuSet;
  readonly reserved?: CpuSet;
  readonly fixCpuMismatch?: true;
  readonly to?: Form;
  readonly output?: OutputFormat;
}

const EXAMPLES = `
A mask is one entry for the whole VM, or one for each vCPU, between colons: "all", or CPU ids and ranges between commas.

Examples:
  plumbline cpu-mask parse 2,0-1:all:4,6-8             # 0-2:all:4,6-8
  plumbline cpu-mask explain 0-3:8 --vcpus 2 --online 0-7
  plumbline cpu-mask convert 1:3 --to taskset          # 0x00000002 and 0x00000008
  plumbline cpu-mask convert 1:2,4-7:0-1 --to xen      # cpus = [ "1", "2,4-7", "0-1" ]

Ends with 0, with 1 where the mask does not go with the vCPUs, the host or the form, with 2 if it cannot be read.`;

/** `plumbline cpu-mask` */
export function cpuMaskCommand(): Command {
  return new Command('cpu-mask')
    .description('Reads CPU masks (annotation plumbline.dev/cpu-mask) without a cluster.')
    .addCommand(parseCommand())
    .addCommand(explainCommand())
    .addCommand(convertCommand())
    .addHelpText('after', EXAMPLES);
}

function parseCommand(): Command {
  const command = new Command('parse')
    .argument('<mask>', 'the mask')
    .description('Checks a mask and prints its canonical form.');
  return withOutput(command, ['json', 'yaml']).action(async (text: string, { output }: Flags) => {
    const mask = readMask(text);
    const data = { mask: formatMask(mask), entries: mask.entries.map(String), pinsNothing: pinsNothing(mask) };
    await print(output, data, { text: () => [data.mask] });
  });
}

function explainCommand(): Command {
  const command = new Command('explain')
    .argument('<mask>', 'the mask')
    .description('Says where each vCPU may run, and what is left of it on a host.')
    .option('--vcpus <number>', 'vCPUs of the VM: the mask has to go with them', readVcpus)
    .option('--online <cpus>', 'online CPUs of a host, as 0-3,8; default: no host is asked about', readCpus)
    .option('--reserved <cpus>', 'CPUs of the host that no VM may have', readCpus)
    .option('--fix-cpu-mismatch', 'as the annotation plumbline.dev/fix-cpu-mismatch: "true"');
  return withOutput(command, ['json', 'yaml']).action(async (text: string, flags: Flags) => {
    const { vcpus, online, reserved = CpuSet.EMPTY, fixCpuMismatch = false, output } = flags;
    const explanation = explainMask({ mask: readMask(text), vcpus, online, reserved, fixMismatch: fixCpuMismatch });
    await print(output, explanation, { text: () => explanationLines(explanation) });
    process.exitCode = explanation.problems.length === 0 ? EXIT.ok : EXIT.findings;
  });
}

function convertCommand(): Command {
  const command = new Command('convert')
    .argument('<mask>', 'the mask')
    .description(
      'Writes a mask in another form: canonical; list, a line of CPUs for each vCPU; taskset, the same in hexadecimal; ' +
        'xen, the line of a domain’s configuration; lxc, the cpuset of a container. Prints nothing where nothing is pinned.',
    )
    .addOption(new Option('--to <form>', 'the form').choices(FORMS).makeOptionMandatory())
    .option('--vcpus <number>', 'vCPUs of the VM; default: as many as the mask has entries', readVcpus)
    .option('--online <cpus>', 'what "all" stands for, as 0-63', readCpus);
  return withOutput(command, ['json', 'yaml']).action(async (text: string, flags: Flags) => {
    const { to: form = 'canonical', vcpus, online, output } = flags;
    const lines = orFinding(() => convertMask({ mask: readMask(text), form, vcpus, online }));
    await print(output, { form, lines }, { text: () => lines });
  });
}

/** A mask that a form cannot say is no wrong command line: the user learns that the form is too poor. */
function orFinding<T>(convert: () => T): T {
  try {
    return convert();
  } catch (error) {
    if (error instanceof MaskFormError) throw new CliError(EXIT.findings, error.message, { cause: error });
    throw error;
  }
}
