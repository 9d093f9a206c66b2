import { readdir, readFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { runScript } from './arguments.ts';

export interface LockedPackage {
  readonly version?: string;
  readonly integrity?: string;
  readonly license?: string;
  readonly dev?: boolean;
  readonly optional?: boolean;
  readonly devOptional?: boolean;
}
export interface Lock {
  readonly version: string;
  readonly packages: Readonly<Record<string, LockedPackage>>;
}

export function shippedPackages({ packages }: Lock): [path: string, locked: LockedPackage][] {
  return Object.entries(packages).filter(([path, { dev, devOptional }]) => path !== '' && !dev && !devOptional);
}

/**
 * An SBOM of some packages of the lock file. It has no serial number and no time, so the same lock file gives the same
 * document. (`npm sbom --omit dev` leaves out packages that development uses as well.)
 * Source: CycloneDX 1.5, https://cyclonedx.org/docs/1.5/json/
 * @param name the name of the component that contains them
 */
export function billOf(
  name: string,
  version: string,
  packages: readonly (readonly [path: string, locked: LockedPackage])[],
): object {
  const components = packages.map(([path, locked]) => componentOf(packageName(path), locked));
  // A package may occur twice, below two others.
  const unique = new Map(components.map((one) => [one['bom-ref'], one]));
  return {
    $schema: 'http://cyclonedx.org/schema/bom-1.5.schema.json',
    bomFormat: 'CycloneDX',
    specVersion: '1.5',
    version: 1,
    metadata: {
      component: {
        'bom-ref': `${name}@${version}`,
        type: 'application',
        name,
        version,
        licenses: [{ license: { id: 'Apache-2.0' } }],
      },
    },
    components: [...unique.values()],
  };
}

/** `node_modules/a/node_modules/@b/c` is `@b/c`. */
function packageName(path: string): string {
  return path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);
}

function componentOf(name: string, { version = '', integrity = '', license, optional }: LockedPackage) {
  const digest = /^sha512-(.+)$/.exec(integrity)?.[1];
  return {
    'bom-ref': `${name}@${version}`,
    type: 'library',
    name,
    version,
    scope: optional ? 'optional' : 'required',
    purl: `pkg:npm/${name.replace('@', '%40')}@${version}`,
    ...(digest !== undefined && {
      hashes: [{ alg: 'SHA-512', content: Buffer.from(digest, 'base64').toString('hex') }],
    }),
    ...(license !== undefined && { licenses: [{ expression: license }] }),
  };
}

/** The licenses of every package that may be in a bundle. @param root with node_modules */
export async function thirdPartyLicenses(root: string): Promise<string> {
  const lock = JSON.parse(await readFile(join(root, 'package-lock.json'), 'utf8')) as Lock;
  return licensesOf(
    shippedPackages(lock).map(([path]) => path),
    [root],
  );
}

/**
 * The licenses of packages, each text once, as they require. @param roots folders with node_modules, in order of
 * preference
 */
export async function licensesOf(paths: readonly string[], roots: readonly string[]): Promise<string> {
  const names = new Map<string, string[]>();
  for (const path of paths) {
    const texts = await Promise.all(roots.map((root) => licenseIn(join(root, path))));
    const text = texts.find((one) => one !== undefined);
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
  const lock = JSON.parse(await readFile(join(import.meta.dirname, '../package-lock.json'), 'utf8')) as Lock;
  const bill = billOf('plumbline', lock.version, shippedPackages(lock));
  process.stdout.write(`${JSON.stringify(bill, undefined, 2)}\n`);
}

if (process.argv[1] === import.meta.filename) await runScript('npm run build:sbom', main);
