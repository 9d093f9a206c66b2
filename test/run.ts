import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import Mocha from 'mocha';
import { missingParts } from './support/parts.ts';

/**
 * Runs every test below the folders, or in the files, of test/ that are named as arguments (default: all), then says
 * which parts were missing and prints the count as the last line. Exits with 1 when a test fails or when there was none
 * to run, with 2 when an argument names nothing.
 */
const folders = process.argv.slice(2);
// An exit, so that what the tests started is ended with it.
for (const [signal, status] of [['SIGINT', 130] as const, ['SIGTERM', 143] as const]) {
  process.once(signal, () => process.exit(status));
}
const mocha = new Mocha({ timeout: 20_000, forbidOnly: true, reporter: process.env.CI ? 'dot' : 'spec' });
for (const folder of folders.length > 0 ? folders : ['']) {
  if (!existsSync(join(import.meta.dirname, folder))) {
    console.error(`${folder}: no such folder or file in test/`);
    process.exit(2);
  }
  for (const file of await testFiles(join(import.meta.dirname, folder))) mocha.addFile(file);
}
await mocha.loadFilesAsync();
const runner = mocha.run((failures) => {
  const { passes = 0, pending = 0, tests = 0 } = runner.stats ?? {};
  for (const line of missingParts()) console.log(line);
  console.log(`${passes} passed, ${failures} failed, ${pending} skipped`);
  process.exit(failures > 0 || tests === 0 ? 1 : 0);
});

async function testFiles(folder: string): Promise<string[]> {
  if (folder.endsWith('.test.ts')) return [folder];
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile() && entry.name.endsWith('.test.ts'))
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}
