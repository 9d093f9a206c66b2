import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

const PROGRAMS: Readonly<Record<string, readonly string[]>> = {
  faults: ['faults/run.ts'],
  life: ['life/run.ts'],
  soak: ['soak/run.ts'],
  upgrade: ['faults/run.ts', '--on', 'real', '--scenario', 'upgrade'],
  image: ['run.ts', 'image/engine.long.ts'],
};

const USAGE = `npm run test:long -- <name> [options]

Runs tests that take from minutes to hours:

  faults    processes, connections and machines fail while VMs are created and deleted
  life      random events on whole nodes: the report, the Lease and Open vSwitch agree with the truth
  soak      memory, open files, timers and watches over a long time
  upgrade   replaces every daemon from the previous release and back, under load (20 minutes; a control plane, root)
  image     builds and starts all images for both architectures, and compares two builds (25 minutes; buildah, root)

npm run test:long -- <name> --help lists the options of one of them.`;

const [name = '--help', ...options] = process.argv.slice(2);
const program = PROGRAMS[name];
if (program === undefined) {
  const isHelp = name === '--help';
  (isHelp ? console.log : console.error)(isHelp ? USAGE : `${name}: unknown test\n\n${USAGE}`);
  process.exit(isHelp ? 0 : 2);
}
const [file = '', ...first] = program;
const args = [...process.execArgv, join(import.meta.dirname, file), ...first, ...options];
process.exit(spawnSync(process.execPath, args, { stdio: 'inherit' }).status ?? 1);
