import type { NodeTopologyStatus } from '../../../kube/node-topology.ts';
import type { Cluster, LabNode } from '../cluster.ts';
import type { LabMachine } from '../lab.ts';
import type { MakeDisks } from '../machine/qemu.ts';
import type { GuestAgent } from './guest-agent.ts';
import type { ScenePods } from './scene-pods.ts';

export interface Scenario {
  readonly name: string;
  readonly about: string;
  /** Installed by the shipped DaemonSet from its image; otherwise a systemd unit with the same restrictions. */
  readonly daemonSet?: boolean;
  readonly components?: readonly string[];
  /** The line about missing requirements; undefined: none. With any, it is skipped. */
  missing?(): string | undefined;
  /** Default: one machine. A second one is another node, whose pods reach those of the first. */
  readonly machines?: 2;
  readonly disks?: MakeDisks;
  /** Plays it. A step that does not hold throws and ends the scenario; functions in `scene.undo` run in any case. */
  play(scene: Scene): Promise<void>;
}

/** One machine of the lab at the start of a scenario: its node Ready, no pod of the runner, no running agent. */
export interface Scene {
  readonly lab: LabMachine;
  readonly cluster: Cluster;
  readonly node: LabNode;
  readonly agent: GuestAgent;
  readonly pods: ScenePods;
  report(): Promise<NodeTopologyStatus>;
  readonly machines: readonly Scene[];
  readonly signal: AbortSignal;
  /** Repeats a counted check until it does not throw, for `seconds` (default 900); prints the text that it returns. */
  holds(what: string, check: () => Promise<unknown>, seconds?: number): Promise<void>;
  /** Runs at the end of the scenario, the last one first, for every outcome. */
  undo(act: () => Promise<unknown>): void;
}
