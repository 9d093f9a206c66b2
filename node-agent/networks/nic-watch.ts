import { hasCarrier, interfaceNames } from '../../hardware/nic-cells.ts';
import { resultOrNone } from '../../model/json.ts';
import { everyTick } from '../../runtime/time.ts';
import { Listeners } from '../lifecycle/duty.ts';
import type { DiscoveredNetworks } from './locate.ts';

/** Seconds between reads of the carriers that the switch does not report. */
const CARRIER_POLL_SECONDS = 2;
/** Seconds between reads of the names of the host's interfaces, which is one directory. */
const NAMES_POLL_SECONDS = 10;

/**
 * Follows what a search found and what changes without a notification: carriers that the switch does not report, addresses,
 * and NICs that are added, removed or renamed. Owner: the last search. Age: as old as that search; a difference makes the
 * owner search again. End: the next search, or `end`.
 */
export class NicWatch extends Listeners {
  readonly #sysfsRoot: string;
  /** Undefined: nothing was found that could change. */
  #latest: DiscoveredNetworks | undefined;
  #names = '';
  #carrierTimer: NodeJS.Timeout | undefined;
  #endNames: (() => void) | undefined;

  constructor(sysfsRoot: string) {
    super();
    this.#sysfsRoot = sysfsRoot;
  }

  /** The names of the host's interfaces. Read them before a search, so that no change is missed. */
  names(): string {
    return interfaceNames(this.#sysfsRoot).sort().join(' ');
  }

  /** Notifies when a carrier or a name differs from that search. If nothing can change, it does not wake the process. */
  follow(discovered: DiscoveredNetworks | undefined, names: string): void {
    this.#latest = discovered;
    this.#names = names;
    if (discovered === undefined) {
      this.end();
      return;
    }
    this.#endNames ??= everyTick(NAMES_POLL_SECONDS, () => this.#check(() => this.names() !== this.#names));
    if (discovered.lacksAddress || discovered.carriers.size > 0) {
      this.#carrierTimer ??= setInterval(() => this.#check(() => this.#differs()), CARRIER_POLL_SECONDS * 1000);
    } else this.#endCarriers();
  }

  end(): void {
    this.#endCarriers();
    this.#endNames?.();
    this.#endNames = undefined;
  }

  #endCarriers(): void {
    clearInterval(this.#carrierTimer);
    this.#carrierTimer = undefined;
  }

  #differs(): boolean {
    const { lacksAddress = false, carriers = [] } = this.#latest ?? {};
    return lacksAddress || [...carriers].some(([name, up]) => hasCarrier(this.#sysfsRoot, name) !== up);
  }

  /** What cannot be read now may differ; the search then says why. */
  #check(differs: () => boolean): void {
    if (resultOrNone(differs) !== false) this.notify();
  }
}
