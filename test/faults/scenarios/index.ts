import { CONTROL_PLANE } from './control-plane.ts';
import { DAEMONS } from './daemons.ts';
import type { Scenario } from './scenario.ts';
import { UPGRADE } from './upgrade.ts';

export const SCENARIOS: readonly Scenario[] = [...CONTROL_PLANE, ...DAEMONS, UPGRADE];
