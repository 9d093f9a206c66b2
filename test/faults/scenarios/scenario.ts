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
  /** Whether no launcher's creation may be refused, also by an answer that says to try again. */
  readonly noRefusals?: true;
  /** Whether a launcher that was placed may end before it runs, or for which reasons; its VM is created again. */
  readonly launchersMayFail?: true | RegExp;
  /** The bundles that the daemons are started from, where these are not those of this build. */
  readonly from?: () => string | undefined;
  /** Whether the node with an Open vSwitch has a real one, where it is installed. Else a stand-in. */
  readonly openVswitch?: true;
  /** Whether the extender is a sidecar of Plumbline's kube-schedulers, on a real control plane. Default: own. */
  readonly scheduler?: 'own' | 'sidecar';
  /** What must exist before the first VM starts. */
  readonly prepare?: (world: World) => Promise<void>;
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
