import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { runScript } from './arguments.ts';
import { billOf, type Lock, shippedPackages } from './bill-of-materials.ts';

async function main(): Promise<void> {
  const lock = JSON.parse(await readFile(join(import.meta.dirname, '../package-lock.json'), 'utf8')) as Lock;
  const bill = billOf('plumbline', lock.version, shippedPackages(lock));
  process.stdout.write(`${JSON.stringify(bill, undefined, 2)}\n`);
}

await runScript('npm run build:sbom', main);
