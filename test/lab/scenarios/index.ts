import { CHANGE } from './change.ts';
import { FAULTS_SCENARIO } from './faults.ts';
import { GATE } from './gate.ts';
import { INSTALLED } from './installed.ts';
import { INTERRUPTS } from './interrupts.ts';
import { KUBEVIRT } from './kubevirt.ts';
import { MIGRATION } from './migration.ts';
import { PAGES_SCENARIO } from './pages.ts';
import type { Scenario } from './scenario.ts';

export const SCENARIOS: readonly Scenario[] = [
  INSTALLED,
  FAULTS_SCENARIO,
  CHANGE,
  PAGES_SCENARIO,
  GATE,
  INTERRUPTS,
  // Its definitions of VMs stay, which are stricter than those of other scenarios.
  KUBEVIRT,
  MIGRATION,
];
