import type { Random } from '../../lab/random.ts';
import type { Load } from '../load.ts';
import type { Ground, World } from '../world/world.ts';

/** One way in which things go wrong while VMs come and go. */
export interface Scenario {
  readonly name: string;
  readonly title: string;
  readonly on: readonly Ground[];
  /** Why it cannot be run here; undefined if it can. */
  readonly missing?: () => string | undefined;
  /** VMs that are to run, unless the caller says. */
  readonly vms: number;
  /** Whether a launcher's creation may fail for a while: the webhook, or what it is asked by, is not there. */
  readonly admissionsMayFail?: true;
  /** Whether a launcher that was placed may end before it runs; its VM is created again. */
  readonly launchersMayFail?: true;
  /** Does it, and returns when it is over. */
  run(context: FaultContext): Promise<void>;
}

export interface FaultContext {
  readonly world: World;
  readonly load: Load;
  readonly random: Random;
  /** Adds to what is printed of the run. */
  readonly note: (text: string) => void;
}
