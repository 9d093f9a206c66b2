import { FULL_PCPUS_ANNOTATION, FULL_PCPUS_ONLY } from '../../model/names.ts';
import type { VmiShape } from '../../model/shapes.ts';
import { usageError } from '../support/exit-status.ts';

/** A VM on the command line. */
export interface VmShape {
  readonly name: string;
  /** Undefined: as many as fit. */
  readonly count: number | undefined;
  readonly vmi: VmiShape;
  readonly networks: readonly string[];
}

const SHAPE = /^(\d{1,4})c(?:(\d{1,2})t)?(?:@([^:@]+))?(?::(\d{1,6}))?$/;
const MOST = 100_000;

/**
 * Parses `8c`, `4c2t`, `4c2t:10`, `4c2t@physnet0:10`, `8c1t@physnet0,tunnel`: cores and threads of the guest, its
 * required networks, and the number of VMs. Such a VM has dedicated CPUs, an isolated emulator thread and the
 * annotation.
 * @throws CliError
 */
export function parseShape(text: string): VmShape {
  const [, cores = '', threads = '1', networks, count] = SHAPE.exec(text) ?? [];
  const amount = count === undefined ? undefined : Number(count);
  const wrong = (why: string) => usageError(`--vm ${text}: ${why}`);
  if (cores === '')
    throw wrong('expected cores and threads such as 8c or 4c2t, with optional @physnet and :count: 4c2t@physnet0:10');
  if (Number(cores) === 0 || Number(threads) === 0) throw wrong('a VM needs at least one core with one thread');
  // KubeVirt and QEMU support no more for a guest.
  if (Number(threads) > 2) throw wrong('KubeVirt supports at most 2 threads for each core of a guest');
  if (amount === 0 || (amount ?? 0) > MOST) throw wrong(`expected a count from 1 to ${MOST}`);
  return {
    name: text.replace(/:\d+$/, ''),
    count: amount,
    networks: networks?.split(',').filter((one) => one !== '') ?? [],
    vmi: {
      metadata: { annotations: { [FULL_PCPUS_ANNOTATION]: FULL_PCPUS_ONLY } },
      spec: {
        domain: {
          cpu: {
            cores: Number(cores),
            threads: Number(threads),
            dedicatedCpuPlacement: true,
            isolateEmulatorThread: true,
          },
        },
      },
    },
  };
}
