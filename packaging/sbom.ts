import { execFileSync } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { runScript } from './arguments.ts';

const ROOT = join(import.meta.dirname, '..');
const MAX_BILL_BYTES = 64 * 1024 * 1024;

interface LockedPackage {
  readonly version?: string;
  readonly dev?: boolean;
  readonly devOptional?: boolean;
}
export interface Lock {
  readonly version: string;
  readonly packages: Readonly<Record<string, LockedPackage>>;
}

export type ShippedPackage = readonly [path: string, locked: LockedPackage];

function shippedPackages({ packages }: Lock): ShippedPackage[] {
  return Object.entries(packages).filter(([path, { dev, devOptional }]) => path !== '' && !dev && !devOptional);
}

interface Bill {
  readonly metadata: object;
  readonly components: readonly { readonly 'bom-ref': string }[];
  readonly [key: string]: unknown;
}

/**
 * The part of `npm sbom` about some packages, without serial number and time: the same lock file gives the same text.
 * (`--omit dev` would leave out packages that development uses as well.)
 * @param name the name of the component that contains them
 */
export function billOf(name: string, version: string, packages: readonly ShippedPackage[]): object {
  const command = ['sbom', '--package-lock-only', '--sbom-format', 'cyclonedx'];
  const text = execFileSync('npm', command, { cwd: ROOT, encoding: 'utf8', maxBuffer: MAX_BILL_BYTES });
  const { serialNumber: _serial, dependencies: _graph, components, ...head } = JSON.parse(text) as Bill;
  const licenses = [{ license: { id: 'Apache-2.0' } }];
  const references = new Set(packages.map(([path, locked]) => `${packageName(path)}@${locked.version}`));
  return {
    ...head,
    metadata: { component: { 'bom-ref': `${name}@${version}`, type: 'application', name, version, licenses } },
    components: components.filter((component) => references.delete(component['bom-ref'])),
  };
}

/** `node_modules/a/node_modules/@b/c` is `@b/c`. */
function packageName(path: string): string {
  return path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);
}

/** The licenses of every package that may be in a bundle. @param root with node_modules */
export async function thirdPartyLicenses(root: string): Promise<string> {
  const lock = JSON.parse(await readFile(join(root, 'package-lock.json'), 'utf8')) as Lock;
  const paths = shippedPackages(lock).map(([path]) => path);
  return licensesOf(paths, [root]);
}

/** The licenses of packages, each text once. @param roots folders with node_modules, in order of preference */
export async function licensesOf(paths: readonly string[], roots: readonly string[]): Promise<string> {
  const names = new Map<string, string[]>();
  for (const path of paths) {
    const texts = await Promise.all(roots.map((root) => licenseIn(join(root, path))));
    const text = texts.find((text) => text !== undefined);
    // A module for another platform is not installed.
    if (text !== undefined) names.set(text, [...(names.get(text) ?? []), relative('node_modules', path)]);
  }
  return [...names].map(([text, of]) => `${of.join(', ')}\n\n${text}\n`).join(`\n${'-'.repeat(80)}\n\n`);
}

async function licenseIn(folder: string): Promise<string | undefined> {
  const entries = await readdir(folder).catch(() => [] as string[]);
  const file = entries.find((name) => /^(licen[cs]e|copying)/i.test(name));
  return file === undefined ? undefined : (await readFile(join(folder, file), 'utf8')).trim();
}

async function main(): Promise<void> {
  const lock = JSON.parse(await readFile(join(ROOT, 'package-lock.json'), 'utf8')) as Lock;
  const bill = billOf('plumbline', lock.version, shippedPackages(lock));
  process.stdout.write(`${JSON.stringify(bill, undefined, 2)}\n`);
}

if (process.argv[1] === import.meta.filename) await runScript('npm run build:sbom', main);
