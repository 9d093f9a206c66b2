import { buildOnce } from '../support/bundles.ts';
import { commandLine, exitOnSignals, newSeed } from '../support/command-line.ts';
import { assetDirectories, isInstalled } from '../support/parts.ts';
import { play } from './play.ts';
import { SCENARIOS } from './scenarios/index.ts';
import type { Ground } from './world/world.ts';

const USAGE = `npm run test:long -- faults [options]

Breaks things while VMs come and go, and watches from outside that nothing is broken that must not be.

  --on <ground>        sandbox, real, or both (default: both; real is skipped without a control plane)
  --scenario <names>   some of ${SCENARIOS.map(({ name }) => name).join(', ')}
  --vms <number>       VMs that are to run in each (default: each scenario's own number)
  --seed <number>      repeats the faults and the VMs of another run
  --no-build           take the bundles as they are
  --help

Ends with 0 if every scenario held, with 1 if one did not (its logs stay), with 2 on wrong options.`;

const { values, refuse, wholeNumber } = commandLine(USAGE, {
  on: { type: 'string', default: 'both' },
  scenario: { type: 'string' },
  vms: { type: 'string' },
  seed: { type: 'string' },
  'no-build': { type: 'boolean' },
});
const seed = wholeNumber('seed', 0) ?? newSeed();
const vms = wholeNumber('vms', 20);
if (!['sandbox', 'real', 'both'].includes(values.on)) refuse(`--on ${values.on}: expected sandbox, real or both`);
const names = values.scenario?.split(',');
const unknown = names?.find((name) => !SCENARIOS.some((one) => one.name === name));
if (unknown !== undefined) refuse(`--scenario ${unknown}: there is no such scenario`);

const grounds = (values.on === 'both' ? ['sandbox', 'real'] : [values.on]) as Ground[];

exitOnSignals();
console.log(`seed ${seed}`);
if (!values['no-build']) buildOnce();
let held = 0;
let failed = 0;
for (const ground of grounds) {
  if (ground === 'real' && !isInstalled('controlPlane')) {
    console.log(`real: skipped, no control plane in ${assetDirectories().join(', ')}`);
    if (values.on === 'real') failed++;
    continue;
  }
  for (const scenario of SCENARIOS.filter(({ name, on }) => on.includes(ground) && (names?.includes(name) ?? true))) {
    const missing = scenario.missing?.();
    if (missing !== undefined) {
      console.log(`\n${ground} ${scenario.name}: skipped, ${missing}`);
      continue;
    }
    console.log(`\n${ground} ${scenario.name}: ${scenario.title}`);
    const began = performance.now();
    const outcome = await play(scenario, {
      ground,
      seed,
      vms: vms ?? scenario.vms,
      progress: (text) => console.log(`  … ${text}`),
    });
    for (const note of outcome.notes) console.log(`  ${note}`);
    for (const problem of outcome.problems.slice(0, 20)) console.log(`  NOT HELD: ${problem}`);
    const seconds = ((performance.now() - began) / 1000).toFixed(0);
    const isHeld = outcome.problems.length === 0;
    if (isHeld) held++;
    else failed++;
    const again = `npm run test:long -- faults --seed ${seed} --on ${ground} --scenario ${scenario.name}`;
    console.log(isHeld ? `  held (${seconds} s)` : `  logs: ${outcome.logs}; again: ${again}`);
  }
}
console.log(`\nseed ${seed}: ${held} held, ${failed} failed`);
process.exit(failed > 0 || held === 0 ? 1 : 0);
