import { hasCarrier } from '../../hardware/nic-cells.ts';
import type { FoundNetworks } from './locate.ts';

/** Seconds between reads of the carriers that the switch does not report. */
const PERIOD = 2;

/**
 * Follows the state that a search found and that changes without a notification.
 * @param onChange called when a carrier differs from the latest search, or the search has to be repeated
 */
export function createCarrierWatch(sysfsRoot: string, onChange: () => void) {
  let latest: FoundNetworks | undefined;
  let timer: NodeJS.Timeout | undefined;

  const look = () => {
    if (latest === undefined) return;
    const isChanged = [...latest.carriers].some(([name, up]) => hasCarrier(sysfsRoot, name) !== up);
    if (latest.lacksAddress || isChanged) onChange();
  };

  const end = () => {
    clearInterval(timer);
    timer = undefined;
  };

  return {
    end,
    /** Follows the result of the latest search. If nothing in it can change, the watch does not wake the process. */
    follow(found: FoundNetworks | undefined) {
      latest = found;
      const isNeeded = found !== undefined && (found.lacksAddress || found.carriers.size > 0);
      if (isNeeded) timer ??= setInterval(look, PERIOD * 1000);
      else end();
    },
  };
}
