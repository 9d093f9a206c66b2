import type { NovaCell } from './nova-fixture.ts';
import { fitsAsExpected } from './nova-pinning.ts';
import { type Adapter, collect } from './outcome.ts';

interface GeneratedCase {
  readonly hostCell: NovaCell;
  readonly vcpus: number;
  readonly threadPolicy: string | null;
  readonly emulatorThreads: string | null;
  readonly expected: { readonly fits: boolean; readonly pins?: Readonly<Record<string, number>> };
}

/** nova-pinning-generated.json: one host cell, one guest; the intended differences are those of nova-pinning.ts. */
export const run: Adapter = (content) =>
  collect(
    content as GeneratedCase[],
    (item, index) => `#${index} ${item.vcpus} vCPUs, ${item.threadPolicy ?? 'no'} policy`,
    (item) =>
      fitsAsExpected({
        id: '',
        name: '',
        kind: 'fit',
        hostCells: [item.hostCell],
        request: {
          guestCells: [
            {
              cpuPolicy: 'dedicated',
              memoryMiB: 0,
              threadPolicy: item.threadPolicy,
              dedicatedVcpus: Array.from({ length: item.vcpus }, (_, vcpu) => vcpu),
            },
          ],
          emulatorThreads: item.emulatorThreads,
        },
        expected: { fits: item.expected.fits },
      }),
  );
