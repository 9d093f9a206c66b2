import type { NodeTopologyStatus } from '../../../kube/node-topology.ts';
import type { Cluster, LabNode } from '../cluster.ts';
import type { LabMachine } from '../lab.ts';
import type { MakeDisks } from '../machine/qemu.ts';
import type { GuestAgent } from './guest-agent.ts';
import type { ScenePods } from './scene-pods.ts';

/** A required behaviour of the bundled agent on the lab's node, step by step. */
export interface Scenario {
  /** Its name for `--scenario`. */
  readonly name: string;
  /** One line about what is checked. */
  readonly about: string;
  /**
   * The agent is installed from its image by the shipped DaemonSet; otherwise it is a systemd unit with the same
   * restrictions.
   */
  readonly daemonSet?: boolean;
  /** Kustomize components of the DaemonSet, as folders of manifests/. */
  readonly components?: readonly string[];
  /** The line about missing requirements; undefined: none. With any, it is skipped. */
  missing?(): string | undefined;
  /** Default: one machine. A second one is another node, whose pods reach those of the first. */
  readonly machines?: 2;
  /** Files that the guests have as read-only disks. */
  readonly disks?: MakeDisks;
  /** Plays it. A step that does not hold throws and ends the scenario; functions in `scene.undo` run in any case. */
  play(scene: Scene): Promise<void>;
}

/** One machine of the lab at the start of a scenario: its node Ready, no pod of the runner, no running agent. */
export interface Scene {
  readonly lab: LabMachine;
  readonly cluster: Cluster;
  readonly node: LabNode;
  /** The bundled agent, installed in the guest but not started. */
  readonly agent: GuestAgent;
  readonly pods: ScenePods;
  /** The agent's report of the node. @throws Error if there is none */
  report(): Promise<NodeTopologyStatus>;
  /** The scene on each machine, the first one first. */
  readonly machines: readonly Scene[];
  readonly signal: AbortSignal;
  /**
   * One check, counted and printed. `check` is repeated until it does not throw, for at most `seconds` (default 900);
   * returned text is printed after the step.
   */
  holds(what: string, check: () => Promise<unknown>, seconds?: number): Promise<void>;
  /** Runs at the end of the scenario, the last one first, for every outcome. */
  undo(act: () => Promise<unknown>): void;
}
