import type { Random } from '../../lab/random.ts';
import type { Load } from '../load.ts';
import type { Ground, World } from '../world/world.ts';

export interface Scenario {
  readonly name: string;
  readonly title: string;
  readonly on: readonly Ground[];
  readonly missing?: () => string | undefined;
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
  readonly prepare?: (world: World) => Promise<void>;
  run(context: FaultContext): Promise<void>;
}

export interface FaultContext {
  readonly world: World;
  readonly load: Load;
  readonly random: Random;
  readonly note: (text: string) => void;
}
