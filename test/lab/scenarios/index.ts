import { FAULTS_SCENARIO } from './faults.ts';
import { GATE } from './gate.ts';
import { INSTALLED } from './installed.ts';
import { MASKS } from './masks.ts';
import { NETWORKS } from './networks.ts';
import { OVS } from './ovs.ts';
import type { Scenario } from './scenario.ts';

/** Every scenario, in the order in which `--scenario all` plays them. */
export const SCENARIOS: readonly Scenario[] = [INSTALLED, FAULTS_SCENARIO, NETWORKS, OVS, GATE, MASKS];
