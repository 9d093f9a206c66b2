import { EVEN_PARITY_ANNOTATION, type GuestTopology } from '../../model/launcher/cpus.ts';
import {
  type LauncherCells,
  LauncherPinError,
  launcherPinRequest,
  launcherPins,
  PinPool,
} from '../../model/launcher/pins.ts';
import type { VmiShape } from '../../model/shapes.ts';
import { type Adapter, differs, type Verdict } from './outcome.ts';

type LauncherPinRequest = Parameters<typeof launcherPins>[0];

interface PinCase {
  readonly name: string;
  readonly pool?: 'strict' | 'relaxed';
  readonly guest: GuestTopology;
  readonly host: {
    readonly cells: readonly (readonly { readonly cpu: number; readonly siblings?: readonly number[] }[])[];
  };
  readonly cpuset: readonly number[];
  readonly isolateEmulatorThread?: boolean;
  readonly annotation?: boolean;
  readonly expectError?: boolean | string;
  readonly expectedVcpuPins?: readonly number[];
  readonly expectedThreadPicks?: readonly number[];
  readonly expectedEmulatorPinCount?: number;
}

/** kubevirt-pinning-cases.json: which CPU virt-launcher pins which thread to. */
export const run: Adapter = (content) =>
  (content as readonly PinCase[]).map((one) => ({ name: one.name, check: () => check(one) }));

function check(one: PinCase): Verdict {
  const cells: LauncherCells = one.host.cells.map((cell) => cell.map(({ cpu, siblings = [] }) => ({ cpu, siblings })));
  if (one.expectedThreadPicks !== undefined) {
    const pool = new PinPool(cells, one.cpuset, one.guest.threads);
    return differs(pool.takeThreads(Number.POSITIVE_INFINITY), one.expectedThreadPicks);
  }
  const request = launcherPinRequest(vmiOf(one), one.cpuset, cells);
  return one.expectError ? checkRefused(request) : checkPins(one, request);
}

/** Each CPU of the cpuset has one use, or is spare. */
function checkPins(one: PinCase, request: LauncherPinRequest): Verdict {
  const { vcpus, ioThreads, emulator, spare } = launcherPins(request);
  const ascending = (cpus: readonly number[]) => [...cpus].sort((a, b) => a - b);
  return differs(
    {
      vcpus: one.expectedVcpuPins && vcpus,
      emulator: one.expectedEmulatorPinCount && emulator.length,
      cpus: ascending([...vcpus, ...ioThreads, ...emulator, ...spare]),
    },
    { vcpus: one.expectedVcpuPins, emulator: one.expectedEmulatorPinCount, cpus: ascending(one.cpuset) },
  );
}

function checkRefused(request: LauncherPinRequest): Verdict {
  try {
    return `expected an error, got ${JSON.stringify(launcherPins(request))}`;
  } catch (error) {
    if (error instanceof LauncherPinError) return undefined;
    throw error;
  }
}

function vmiOf(one: PinCase): VmiShape {
  return {
    metadata: { annotations: one.annotation === true ? { [EVEN_PARITY_ANNOTATION]: '' } : {} },
    spec: {
      domain: {
        cpu: {
          ...one.guest,
          dedicatedCpuPlacement: true,
          isolateEmulatorThread: one.isolateEmulatorThread ?? false,
          numa: one.pool === 'strict' ? { guestMappingPassthrough: {} } : undefined,
        },
      },
    },
  };
}
