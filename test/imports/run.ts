import { join } from 'node:path';
import { faultsIn } from './check.ts';
import { RULES } from './rules.ts';

/** Part of `npm run lint`: prints every import that breaks a rule, and exits with 1. */
const root = join(import.meta.dirname, '../..');
const faults = await faultsIn(root, RULES);
for (const fault of faults) console.error(fault);
if (faults.length > 0) console.error(`${faults.length} faults: test/imports/rules.ts says who may import whom`);
process.exit(faults.length > 0 ? 1 : 0);
