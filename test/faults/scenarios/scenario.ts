import type { Random } from '../../lab/random.ts';
import type { Load } from '../load.ts';
import type { Ground, World } from '../world/world.ts';

/** A fault while VMs come and go. */
export interface Scenario {
  readonly name: string;
  readonly title: string;
  readonly on: readonly Ground[];
  /** The reason why it cannot run here; undefined if it can. */
  readonly missing?: () => string | undefined;
  /** The number of VMs to run, unless the caller sets it. */
  readonly vms: number;
  /** Whether a launcher's creation may fail for a while because the webhook or a component that it needs is down. */
  readonly admissionsMayFail?: true;
  /** Whether no launcher's creation may be refused, not even with a request to retry. */
  readonly noRefusals?: true;
  /** Whether a placed launcher may end before it runs, or for which reasons; its VM is created again. */
  readonly launchersMayFail?: true | RegExp;
  /** The bundles of the daemons, if not those of this build. */
  readonly from?: () => string | undefined;
  /** Whether the node with an Open vSwitch has a real one if installed. Otherwise a stand-in. */
  readonly openVswitch?: true;
  /** Objects that must exist before the first VM starts. */
  readonly prepare?: (world: World) => Promise<void>;
  /** Causes the fault, and returns when it is over. */
  run(context: FaultContext): Promise<void>;
}

export interface FaultContext {
  readonly world: World;
  readonly load: Load;
  readonly random: Random;
  /** Adds a line to the printed result. */
  readonly note: (text: string) => void;
}
