import type { architectureOf } from './contents.ts';
import type { Package } from './packages.ts';

/**
 * The bill of materials of an image, as CycloneDX 1.5 in JSON: Plumbline and the npm packages in its bundles. It has neither
 * a serial number nor a time, so the same sources make the same bytes. The base image has a bill of its own.
 * @param version of Plumbline
 */
export function billOfMaterials(
  image: string,
  version: string,
  architecture: NonNullable<ReturnType<typeof architectureOf>>,
  packages: readonly Package[],
): string {
  const own = `pkg:generic/plumbline-${image}@${version}?arch=${architecture}`;
  const components = packages.map(({ name, version: its, integrity, license }) => ({
    type: 'library',
    'bom-ref': purl(name, its),
    name,
    version: its,
    purl: purl(name, its),
    ...(integrity === undefined ? {} : { hashes: [hashOf(integrity)] }),
    ...(license === undefined ? {} : { licenses: [licenseOf(license)] }),
  }));
  const bill = {
    bomFormat: 'CycloneDX',
    specVersion: '1.5',
    version: 1,
    metadata: {
      component: {
        type: 'application',
        'bom-ref': own,
        name: `plumbline-${image}`,
        version,
        licenses: [licenseOf('Apache-2.0')],
      },
    },
    components,
    dependencies: [{ ref: own, dependsOn: components.map((one) => one['bom-ref']) }],
  };
  return `${JSON.stringify(bill, undefined, 2)}\n`;
}

const purl = (name: string, version: string) => `pkg:npm/${name.replace('@', '%40')}@${version}`;

/** `sha512-<base64>` as CycloneDX has it. */
function hashOf(integrity: string): { readonly alg: string; readonly content: string } {
  const [name = '', value = ''] = integrity.split('-', 2);
  return { alg: name.toUpperCase().replace('SHA', 'SHA-'), content: Buffer.from(value, 'base64').toString('hex') };
}

/** A plain identifier, or an expression such as `(MIT OR Apache-2.0)`. */
function licenseOf(text: string): object {
  return /\s/.test(text) ? { expression: text.replace(/^\((.*)\)$/, '$1') } : { license: { id: text } };
}
