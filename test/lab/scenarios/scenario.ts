import type { NodeTopologyStatus } from '../../../kube/node-topology.ts';
import type { Cluster, LabNode } from '../cluster.ts';
import type { Lab } from '../lab.ts';
import type { MakeDisks } from '../machine/qemu.ts';
import type { GuestAgent } from './guest-agent.ts';
import type { ScenePods } from './scene-pods.ts';

/** Something the bundled agent must do on the lab's node, step by step. */
export interface Scenario {
  /** What `--scenario` calls it. */
  readonly name: string;
  /** What is held, in one line. */
  readonly about: string;
  /** The agent is installed from its image by the shipped DaemonSet; else it is a unit that systemd confines. */
  readonly daemonSet?: boolean;
  /** The one line that says what is missing for it; undefined: nothing. It is skipped then. */
  missing?(): string | undefined;
  /** Files that it finds in the guest as read-only disks. */
  readonly disks?: MakeDisks;
  /** Plays it. A step that does not hold throws and ends the scenario; what `scene.undo` was given runs in any case. */
  play(scene: Scene): Promise<void>;
}

/** The lab as a scenario finds it: its node Ready, no pod of the runner's, no agent running. */
export interface Scene {
  readonly lab: Lab;
  readonly cluster: Cluster;
  readonly node: LabNode;
  /** The bundled agent, installed in the guest and not started. */
  readonly agent: GuestAgent;
  readonly pods: ScenePods;
  /** What the agent reports of the node. @throws Error if there is nothing */
  report(): Promise<NodeTopologyStatus>;
  readonly signal: AbortSignal;
  /**
   * One thing to hold, counted and printed. `check` is called again until it does not throw, for `seconds` at most
   * (default 900); text that it returns is printed after the step.
   */
  holds(what: string, check: () => Promise<unknown>, seconds?: number): Promise<void>;
  /** Runs at the end of the scenario, the last first, for every outcome. */
  undo(act: () => Promise<unknown>): void;
}
