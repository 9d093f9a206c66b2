import { CONTROL_PLANE, DAEMONS } from './daemons.ts';
import { ON_NODES } from './nodes.ts';
import type { Scenario } from './scenario.ts';
import { UPGRADE } from './upgrade.ts';

export const SCENARIOS: readonly Scenario[] = [...CONTROL_PLANE, ...ON_NODES, ...DAEMONS, UPGRADE];
