import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import * as names from '../../model/names.ts';
import { PHYSNET_RESOURCE_PREFIX, physnetOfResource, physnetResource } from '../../model/names.ts';

/** The characters that Kubernetes accepts after the slash of a resource name. */
const VALID = /^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;
const bytes = (text: string) => new TextEncoder().encode(text).length;
const name = fc.oneof(
  fc.string({ unit: 'grapheme', minLength: 1, maxLength: 30 }),
  fc.stringMatching(/^[a-zA-Z0-9][-a-zA-Z0-9_.]{0,28}[a-zA-Z0-9]$/),
  fc.stringMatching(/^x--[0-9a-f]{1,20}$/),
);
describe('physnet resource names', () => {
  for (const [physnet, part] of [
    ['physnet0', 'physnet0'],
    ['tenant a', 'x--74656e616e742061'],
    ['-a', 'x--2d61'],
    ['x--61', 'x--782d2d3631'],
    ['netz-süd', 'x--6e65747a2d73c3bc64'],
  ] as const) {
    it(`writes ${physnet} as ${part}`, () => {
      assert.equal(physnetResource(physnet), PHYSNET_RESOURCE_PREFIX + part);
      assert.equal(physnetOfResource(PHYSNET_RESOURCE_PREFIX + part), physnet);
    });
  }

  it('can be decoded, and are valid in Kubernetes', () => {
    fc.assert(
      fc.property(name, (physnet) => {
        fc.pre(bytes(physnet) <= 30);
        const resource = physnetResource(physnet);
        assert.match(resource.slice(PHYSNET_RESOURCE_PREFIX.length), VALID);
        assert.equal(physnetOfResource(resource), physnet);
      }),
    );
  });

  it('are refused for an empty name or a name too long to encode', () => {
    for (const physnet of ['', `${'ü'.repeat(15)}u`]) assert.throws(() => physnetResource(physnet), RangeError);
    for (const physnet of ['a'.repeat(63), 'ü'.repeat(15)])
      assert.equal(physnetOfResource(physnetResource(physnet)), physnet);
  });

  it('are distinguished from other resource names', () => {
    for (const other of ['cpu', 'plumbline.dev/tunnel', PHYSNET_RESOURCE_PREFIX, `${PHYSNET_RESOURCE_PREFIX}x--zz`]) {
      assert.equal(physnetOfResource(other), undefined);
    }
  });
});
describe('shared names', () => {
  const root = join(import.meta.dirname, '../..');
  const values = new Map<string, string>(
    Object.entries(names).flatMap(([constant, value]) =>
      // The kubelet has an option with the same name as KubeVirt's.
      typeof value === 'string' && /[./-]/.test(value) && value !== names.FULL_PCPUS_ONLY
        ? [[value, constant] as const]
        : [],
    ),
  );

  for (const folder of [
    'model',
    'diagnosis',
    'kube',
    'runtime',
    'webhook',
    'scheduler-plugin',
    'node-agent',
    'cli',
    'console',
  ]) {
    it(`in ${folder}/ come from model/names.ts`, () => {
      const files = readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
        .filter((file) => /\.tsx?$/.test(file))
        .map((file) => join(folder, file))
        .filter((file) => file !== 'model/names.ts');
      assert.ok(files.length > 5);
      const copies = files.flatMap((file) =>
        [...readFileSync(join(root, file), 'utf8').matchAll(/'([^'\n]+)'/g)].flatMap(([, text = '']) =>
          values.has(text) ? [`${file}: '${text}' is ${values.get(text)}`] : [],
        ),
      );
      assert.deepEqual(copies, []);
    });
  }
});
