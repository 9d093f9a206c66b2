import { join } from 'node:path';
import { faultsIn } from './check.ts';

/** Part of `npm run lint`: prints every import that breaks a rule and exits with 1 if there is one. */
const faults = faultsIn(join(import.meta.dirname, '../..'));
for (const fault of faults) console.error(fault);
if (faults.length > 0)
  console.error(`${faults.length} imports are not allowed: test/imports/rules.ts says who may import whom`);
process.exit(faults.length > 0 ? 1 : 0);
