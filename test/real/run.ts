import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../support/bundles.ts';
import { commandLine } from '../support/command-line.ts';
import { assetDirectories } from '../support/parts.ts';

const USAGE = `npm run test:real [-- folder ...]

Runs everything below test/real, or those folders of it, against the control plane in KUBEBUILDER_ASSETS or
/usr/local/kubebuilder/bin. Says first which parts these are; where there are none it says so in one line and ends with 0.
Otherwise ends as npm test does.`;

const { positionals: folders } = commandLine(USAGE, {}, true);
const PROGRAMS = ['kube-apiserver', 'etcd', 'kube-scheduler', 'kube-controller-manager', 'kubectl'];
const found = PROGRAMS.map((name) => ({
  name,
  path: assetDirectories()
    .map((directory) => join(directory, name))
    .find((path) => existsSync(path)),
}));
const missing = found.filter(({ path }) => path === undefined).map(({ name }) => name);
if (missing.length > 0) {
  console.log(`test:real: skipped, no ${missing.join(', ')} in ${assetDirectories().join(' or ')}`);
  process.exit(0);
}
for (const { name, path = '' } of found) console.log(`${name}: ${versionOf(name, path)} (${path})`);
const run = [
  '--import',
  'tsx',
  join(root, 'test/run.ts'),
  ...(folders.length > 0 ? folders : ['']).map((one) => join('real', one)),
];
const { status } = spawnSync(process.execPath, run, { cwd: root, stdio: 'inherit' });
process.exit(status ?? 1);

function versionOf(name: string, path: string): string {
  const args = name === 'kubectl' ? ['version', '--client'] : ['--version'];
  return (
    execFileSync(path, args, { encoding: 'utf8' })
      .split('\n')[0]
      ?.replace(/^.*:\s*/, '') ?? ''
  );
}
