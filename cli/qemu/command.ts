import { readFileSync } from 'node:fs';
import { Command } from 'commander';
import { countText } from '../../model/amounts.ts';
import { briefMask, type CpuMask } from '../../model/cpu-mask/mask.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import { createAffinity } from '../../native/affinity.ts';
import { connectQmp, QmpError } from '../../native/qmp.ts';
import { readVcpus } from '../support/arguments.ts';
import { readMask } from '../support/cpus.ts';
import { CliError, EXIT } from '../support/exit-status.ts';
import { type OutputFormat, print, withOutput } from '../support/output.ts';
import { tableLines } from '../support/terminal.ts';
import { type Pinned, type PinRequest, pinQemu } from './pin.ts';

const ONLINE = '/sys/devices/system/cpu/online';

const EXAMPLES = `
Examples:
  qemu-system-x86_64 -S -smp 2 -accel kvm -qmp unix:/run/vm.qmp,server=on,wait=off ... &
  plumbline qemu --qmp /run/vm.qmp --mask 1:3        # vCPU 0 on CPU 1, vCPU 1 on CPU 3
  plumbline qemu --qmp /run/vm.qmp --mask 0-3        # the whole VM, emulator and IO threads too, on CPUs 0 to 3
  plumbline qemu --qmp /run/vm.qmp --mask all        # unpin the whole VM

Exit status: 0 if every vCPU is on its CPUs, 1 if none was pinned and the guest was not resumed, 3 if QEMU cannot
be reached.`;

interface QemuFlags {
  readonly qmp: string;
  readonly mask: CpuMask;
  readonly vcpus?: number;
  readonly fixCpuMismatch?: true;
  readonly cont: boolean;
  readonly output?: OutputFormat;
}

export function createCommand(): Command {
  const command = new Command('qemu')
    .description(
      'Pin the vCPUs of a QEMU process that runs without Kubernetes, with a CPU mask as in Ganeti. Start QEMU with -S and a ' +
        'monitor: the command pins each vCPU thread, verifies it, and then starts the guest. A guest that a user ' +
        'paused, or that is migrating in, is pinned but not resumed.',
    )
    .requiredOption('--qmp <socket>', 'Unix socket of QEMU’s monitor, which serves one client at a time')
    .requiredOption(
      '--mask <mask>',
      'CPUs of each vCPU: 1:3 or 1-2:all; a single entry applies to all threads of the VM: 0-3; all unpins them',
      readMask,
    )
    .option(
      '--vcpus <number>',
      'number of vCPUs that the VM must have; default: as many as the mask has entries',
      readVcpus,
    )
    .option('--fix-cpu-mismatch', 'if the host lacks CPUs of the mask, unpin the VM instead of refusing')
    .option('--no-cont', 'do not start the guest afterwards')
    .addHelpText('after', EXAMPLES)
    .action(async ({ qmp, mask, vcpus, fixCpuMismatch, cont, output }: QemuFlags) => {
      const online = CpuSet.parse(readFileSync(ONLINE, 'utf8'));
      const pinned = await pinAt(qmp, { mask, vcpus, online, fixMismatch: fixCpuMismatch === true, resume: cont });
      await print(output, pinned, { text: () => outcomeLines(mask, pinned) });
    });
  return withOutput(command, ['json', 'yaml']);
}

async function pinAt(socket: string, request: PinRequest): Promise<Pinned> {
  const affinity = createAffinity();
  try {
    const qmp = await connectQmp(socket);
    try {
      return await pinQemu(qmp, affinity, request);
    } finally {
      qmp.close();
    }
  } catch (error) {
    if (error instanceof QmpError) throw new CliError(EXIT.unreachable, error.message, { cause: error });
    throw error;
  }
}

function outcomeLines(mask: CpuMask, { vcpus, others, fellBack, resumed, status }: Pinned): string[] {
  const rows = vcpus.map(({ index, tid, cpus }) => [String(index), String(tid), cpus.toString()]);
  return [
    ...tableLines(['VCPU', 'THREAD', 'CPUS'], rows),
    ...(others === null ? [] : otherLines(others)),
    ...(fellBack ? [`this host lacks CPUs of the mask ${briefMask(mask)}: no thread is pinned`] : []),
    resumed ? 'the guest runs' : `the guest is unchanged: ${status}`,
  ];
}

function otherLines({ threads, left }: NonNullable<Pinned['others']>): string[] {
  const [first] = left;
  return [
    `${countText(threads, 'other thread')} of QEMU (emulator, IO) ${threads === 1 ? 'is' : 'are'} on the same CPUs`,
    ...(first === undefined ? [] : [`the kernel does not move ${left.length} more, such as thread ${first}`]),
  ];
}
