import type { VmStatus } from '../../model/agent-status.ts';
import { REASONS } from '../../model/vm-state/reasons.ts';
import { numbersOf } from '../support/output.ts';
import { maskReason } from './status.ts';

/** Output of `plumbline vm status -o json`: docs/schemas/vm-status.json. */
export function vmStatusData({ vms, overlaps }: VmStatus) {
  return {
    vms: vms.map(({ state, container, housekeeping, threads, ...rest }) => ({
      ...rest,
      container: numbersOf(container),
      verdict: state === null ? null : REASONS[maskReason(state)].verdict,
      reason: state === null ? null : maskReason(state),
      housekeeping: housekeeping === null ? null : numbersOf(housekeeping),
      threads: threads.map(({ allowed, wanted, ...thread }) => ({
        ...thread,
        allowed: numbersOf(allowed),
        wanted: wanted === null ? null : numbersOf(wanted),
      })),
    })),
    overlaps: overlaps.map(({ vms: pair, cpus: list }) => ({ vms: pair, cpus: numbersOf(list) })),
  };
}
