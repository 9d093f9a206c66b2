import { writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import Mocha from 'mocha';

/**
 * Run as a process of its own, in the copy: the tests in these files, until one fails. With PLUMBLINE_PROBES it goes on to the end
 * instead, and writes to that file which probes each test file reaches, as JSON: `[[file, [numbers]], ...]`. What is reached while
 * files are loaded goes under the empty name.
 */
const target = process.env['PLUMBLINE_PROBES'];
const test = join(import.meta.dirname, '..');
const reached = new Map<string, Set<number>>();
let file = '';

declare global {
  var plumblineProbe: ((id: number) => void) | undefined;
}

globalThis.plumblineProbe = (id) => {
  const probes = reached.get(file) ?? new Set();
  reached.set(file, probes.add(id));
};

const mocha = new Mocha({ timeout: 120_000, bail: target === undefined, reporter: 'min' });
for (const name of process.argv.slice(2)) mocha.addFile(join(test, name));
await mocha.loadFilesAsync();
const runner = mocha.run((failures) => {
  if (target !== undefined) writeFileSync(target, JSON.stringify([...reached].map(([name, ids]) => [name, [...ids]])));
  process.exit(failures > 0 ? 1 : 0);
});
runner.on('suite', (suite) => {
  if (suite.file !== undefined) file = relative(test, suite.file);
});
