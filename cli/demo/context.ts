import type { DemoCluster } from './cluster.ts';
import type { OpenVswitch } from './open-vswitch.ts';
import type { Installed } from './plumbline.ts';
import type { Printer } from './printer.ts';

/** Input of the steps. */
export interface DemoContext {
  readonly cluster: DemoCluster;
  readonly ovs: OpenVswitch;
  readonly directory: string;
  readonly printer: Printer;
  /** Starts the three daemons, once. */
  install(): Promise<Installed>;
  /** @throws Error before install() */
  installed(): Installed;
}

/** The node with an Open vSwitch. */
export const OVS_NODE = 'numa1';
