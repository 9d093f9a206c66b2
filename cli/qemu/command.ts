import { readFileSync } from 'node:fs';
import { countText } from '../../model/amounts.ts';
import { planPins } from '../../model/cpu-mask/host-pins.ts';
import { briefMask, type CpuMask, checkCount, entryOf, isForWholeVm, maskForHost } from '../../model/cpu-mask/mask.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import { PlumblineError } from '../../model/errors.ts';
import { createAffinity, EVERY_CPU, SyscallError, type ThreadAffinity } from '../../native/affinity.ts';
import { moveThreads, PinError, pinThreads, type ThreadPin } from '../../native/pin-threads.ts';
import { connectQmp, type Qmp, type QmpCpu, QmpError } from '../../native/qmp.ts';
import { readVcpus, Subcommand } from '../support/command.ts';
import { readMask } from '../support/cpus.ts';
import { CliError, EXIT } from '../support/exit-status.ts';
import { type OutputFormat, print } from '../support/output.ts';
import { tableLines } from '../support/terminal.ts';

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

export const createCommand = () =>
  new Subcommand(
    'qemu',
    'Pin the vCPUs of a QEMU process that runs without Kubernetes, with a CPU mask as in Ganeti. Start QEMU with -S and a ' +
      'monitor: the command pins each vCPU thread, verifies it, and then starts the guest. A guest that a user ' +
      'paused, or that is migrating in, is pinned but not resumed.',
    EXAMPLES,
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
    .withOutput('json', 'yaml')
    .action(async ({ qmp, mask, vcpus, fixCpuMismatch, cont, output }: QemuFlags) => {
      const online = CpuSet.parse(readFileSync(ONLINE, 'utf8'));
      const pinned = await pinAt(qmp, { mask, vcpus, online, fixMismatch: fixCpuMismatch === true, resume: cont });
      await print(output, pinned, { text: () => outcomeLines(mask, pinned) });
    });

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

/** The VM is unchanged: no thread was pinned, and the guest was not resumed. */
class NotPinned extends PlumblineError {
  constructor(why: string, options?: ErrorOptions) {
    super('not-pinned', `${why}; no thread is pinned, and the guest was not resumed`, options);
  }
}

interface PinRequest {
  readonly mask: CpuMask;
  readonly vcpus: number | undefined;
  readonly online: CpuSet;
  readonly fixMismatch: boolean;
  readonly resume: boolean;
}

type Pinned = Awaited<ReturnType<typeof pinQemu>>;

/**
 * Started with -S and never run: the only state that this command ends. It does not end a user's pause or a migration.
 */
const PRELAUNCH = 'prelaunch';

/**
 * Ganeti's sequence for a QEMU that was started with -S: list the vCPU threads, pin each, read back the result, and let
 * the guest run. A mask with a single entry pins QEMU's other threads as well; `all` lets its threads use every CPU
 * again.
 * @throws NotPinned if there are too few or too many threads, gaps in their indexes, CPUs that the host lacks, or a
 * vCPU thread that the kernel does not move. Then every thread has its previous CPUs and the guest was not resumed
 * @throws QmpError if the monitor does not respond; then nothing was pinned either
 */
export async function pinQemu(qmp: Qmp, affinity: ThreadAffinity, request: PinRequest) {
  const { online, resume } = request;
  const status = await qmp.status();
  const cpus = await qmp.cpus();
  const { mask, fellBack } = maskFor(request);
  const { vcpus, whole } = plan(mask, cpus, request);
  const putVcpusBack = pin(affinity, vcpus);
  const others = whole === undefined ? undefined : moveOthers(affinity, qmp, cpus, whole);
  const resumed = resume && status === PRELAUNCH;
  try {
    if (resumed) await qmp.execute('cont');
  } catch (error) {
    putVcpusBack();
    others?.putBack();
    throw error;
  }
  const vcpuThreads = cpus.map(({ index, tid }) => ({ index, tid, cpus: CpuSet.fromWords(affinity.get(tid)) }));
  return {
    vcpus: vcpuThreads.map((thread) => ({ ...thread, cpus: thread.cpus.intersect(online) })),
    /** QEMU's other threads, which a mask with a single entry moves as well; null if the mask does not apply to them. */
    others: others === undefined ? null : { threads: others.threads, left: others.left },
    fellBack,
    resumed,
    status,
  };
}

function maskFor({ mask, online, fixMismatch, vcpus }: PinRequest) {
  const count = vcpus === undefined ? undefined : checkCount(mask, vcpus);
  if (count !== undefined) throw new NotPinned(count);
  const chosen = maskForHost(mask, online, fixMismatch);
  if ('fault' in chosen) throw new NotPinned(chosen.fault);
  return chosen;
}

function plan(mask: CpuMask, cpus: readonly QmpCpu[], { mask: requested, vcpus, online }: PinRequest) {
  const expected = vcpus ?? (requested.entries.length > 1 ? requested.entries.length : cpus.length);
  const tids = new Set(cpus.map(({ tid }) => tid));
  if (tids.size !== cpus.length) {
    throw new NotPinned('several vCPUs share a thread: start QEMU with -accel kvm, or -accel tcg,thread=multi');
  }
  const answer = planPins(
    mask,
    cpus.map(({ index }) => index),
    expected,
    online,
  );
  if (answer.kind === 'refused') throw new NotPinned(`the CPU mask ${briefMask(requested)}: ${answer.message}`);
  const byIndex = new Map(answer.pins.map((pin) => [pin.vcpu, pin.cpus.toWords(2)]));
  const pins = cpus.map(({ index, tid }): ThreadPin => {
    const words = entryOf(mask, index) === 'all' ? undefined : byIndex.get(index);
    return words === undefined ? { tid, words: EVERY_CPU } : { tid, words };
  });
  return { vcpus: pins, whole: isForWholeVm(mask) ? (answer.whole?.toWords(2) ?? EVERY_CPU) : undefined };
}

/** @throws NotPinned */
function pin(affinity: ThreadAffinity, pins: readonly ThreadPin[]): () => void {
  try {
    return pinThreads(affinity, pins);
  } catch (error) {
    if (error instanceof PinError) {
      throw new NotPinned(`${error.message}; it got ${CpuSet.fromWords(error.got)}`, { cause: error });
    }
    throw error instanceof SyscallError ? new NotPinned(error.message, { cause: error }) : error;
  }
}

/** An unpinned thread may start one meanwhile, which the next round finds; one of a pinned thread inherits its CPUs. */
const MAX_ROUNDS = 8;

/** Emulator, IO threads, workers. `threads` moved, the kernel did not move `left`, `putBack` restores all. */
function moveOthers(affinity: ThreadAffinity, qmp: Qmp, cpus: readonly QmpCpu[], words: Uint32Array) {
  const vcpus = new Set(cpus.map(({ tid }) => tid));
  const before = new Map<number, Uint32Array>();
  const left: number[] = [];
  let threads = 0;
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const tids = qmp.threads().filter((tid) => !vcpus.has(tid) && !before.has(tid));
    if (tids.length === 0) break;
    for (const tid of tids) before.set(tid, allowedOf(affinity, tid) ?? words);
    const moved = moveThreads(affinity, tids, words);
    threads += moved.there.length;
    left.push(...moved.left);
  }
  const putBack = () => {
    for (const [tid, originalMask] of before) moveThreads(affinity, [tid], originalMask);
  };
  return { threads, left, putBack };
}

/** Undefined if the thread has ended. */
function allowedOf(affinity: ThreadAffinity, tid: number): Uint32Array | undefined {
  try {
    return affinity.get(tid);
  } catch (error) {
    if (error instanceof SyscallError) return undefined;
    throw error;
  }
}
