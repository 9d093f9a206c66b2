import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../support/bundles.ts';
import { filesOfCheckout } from '../support/checkout.ts';
import { RULES, type Tree } from './check.ts';

/** Files that still break a rule. The list may only shrink: `npm run lint` asks to remove a line whose file follows the rule. */
const REMAINING: Readonly<Record<keyof typeof RULES, readonly string[]>> = {
  misplacedTests: [],
  misnamedShared: [
    'test/kubevirt/cases/launchers.ts',
    'test/kubevirt/cases/migration.ts',
    'test/kubevirt/cases/starts.ts',
  ],
  unreachedFiles: ['node-agent/interrupts/'],
  fixedSleeps: [
    'test/attacks/compromised-node.test.ts',
    'test/attacks/growing-fields.test.ts',
    'test/attacks/memories.test.ts',
    'test/attacks/tenant.test.ts',
    'test/console/fixture.ts',
    'test/demo/outages/run.ts',
    'test/life/file-errors.test.ts',
    'test/life/world/kubelet.ts',
    'test/native/cni/agent.test.ts',
    'test/node-agent/assignments.test.ts',
    'test/node-agent/gate.test.ts',
    'test/node-agent/networks/networks.test.ts',
    'test/node-agent/open-vswitch.test.ts',
    'test/node-agent/ovs-affinity.test.ts',
    'test/node-agent/wiring/thread-affinity.test.ts',
  ],
};

/**
 * Part of `npm run lint`: prints each file that is not where CONTRIBUTING.md says, and exits with 1. Files of REMAINING may
 * break their rule until they follow it; then their lines must go.
 */
const tree: Tree = new Map(
  filesOfCheckout().map((file) => [file, /\.(?:ts|tsx|cjs)$/.test(file) ? readFileSync(join(root, file), 'utf8') : '']),
);
const messages = (Object.keys(RULES) as (keyof typeof RULES)[]).flatMap((rule) => {
  const faults = RULES[rule](tree);
  const remaining: readonly string[] = REMAINING[rule];
  const covers = (path: string, file: string) => file === path || (path.endsWith('/') && file.startsWith(path));
  const fresh = faults.filter(({ file }) => !remaining.some((path) => covers(path, file)));
  const repaired = remaining.filter((path) => !faults.some(({ file }) => covers(path, file)));
  return [
    ...fresh.map(({ file, fault }) => `${file}: ${fault}`),
    ...repaired.map((path) => `test/layout/run.ts: ${path} follows the rule now, remove its line of ${rule}`),
  ];
});
for (const message of messages) console.error(message);
if (messages.length > 0)
  console.error(`${messages.length} files; docs/maintainers/testing.md says where a test stands`);
process.exit(messages.length > 0 ? 1 : 0);
