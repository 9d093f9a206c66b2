import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { root } from '../support/bundles.ts';
import { commandLine } from '../support/command-line.ts';
import { KUBEVIRT_PROGRAMS, kubevirtAssets } from '../support/parts.ts';

const USAGE = `npm run test:kubevirt [-- --help]

Runs test/kubevirt: KubeVirt's own virt-api and virt-controller as processes on a real control plane, with Plumbline as its
manifests install it. KUBEVIRT_ASSETS names the folder with KubeVirt's programs
(${KUBEVIRT_PROGRAMS.join(', ')}).
Where they are missing it says so in one line and ends with 0. Otherwise ends as npm test does.`;

commandLine(USAGE, {}, false);
const [folder] = kubevirtAssets();
if (folder === undefined) {
  console.log('test:kubevirt: skipped, KUBEVIRT_ASSETS names no folder with KubeVirt (docs/maintainers/testing.md)');
  process.exit(0);
}
const run = ['--import', 'tsx', join(root, 'test/run.ts'), 'kubevirt'];
const { status } = spawnSync(process.execPath, run, { cwd: root, stdio: 'inherit' });
process.exit(status ?? 1);
