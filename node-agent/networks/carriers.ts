import { hasCarrier } from '../../hardware/nic-cells.ts';
import { everyAligned } from '../../runtime/aligned.ts';
import type { FoundNetworks } from './locate.ts';

/** Seconds between reads of the carriers that the switch does not report. */
const PERIOD = 2;

/** Follows the state that a search found and that changes without a notification. */
export interface CarrierWatch {
  /** Follows the result of the latest search. If nothing in it can change, the watch does not wake the process. */
  follow(found: FoundNetworks | undefined): void;
  end(): void;
}

/** @param onChange called when a carrier differs from the latest search, or the search has to be repeated */
export function createCarrierWatch(sysfsRoot: string, onChange: () => void): CarrierWatch {
  let latest: FoundNetworks | undefined;
  let stop: (() => void) | undefined;

  const look = () => {
    if (latest === undefined) return;
    const isChanged = [...latest.carriers].some(([name, up]) => hasCarrier(sysfsRoot, name) !== up);
    if (latest.lacksAddress || isChanged) onChange();
  };

  const end = () => {
    stop?.();
    stop = undefined;
  };

  return {
    end,
    follow(found) {
      latest = found;
      const isNeeded = found !== undefined && (found.lacksAddress || found.carriers.size > 0);
      if (isNeeded) stop ??= everyAligned(PERIOD, look);
      else end();
    },
  };
}
