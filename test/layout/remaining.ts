import type { RULES } from './check.ts';

export const REMAINING: Readonly<Record<keyof typeof RULES, readonly string[]>> = {
  misplacedTests: [],
  misnamedShared: [],
  unreachedFiles: [],
  fixedSleeps: [],
};
