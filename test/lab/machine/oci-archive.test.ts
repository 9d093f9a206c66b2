import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { skipWithout } from '../../support/parts.ts';
import { execute } from './commands.ts';
import { type Layer, makeLayer, writeArchive } from './oci-archive.ts';

interface Described {
  readonly digest: string;
  readonly size: number;
  readonly annotations?: Readonly<Record<string, string>>;
}

describe('an image archive created without a container engine', () => {
  let directory: string;
  let layers: Layer[];
  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'plumbline-test-'));
    layers = [];
    for (const name of ['base', 'own']) {
      await mkdir(join(directory, name));
      await writeFile(join(directory, name, 'file'), name);
      layers.push(await makeLayer(join(directory, name), join(directory, `${name}.tar`)));
    }
  });
  after(() => rm(directory, { recursive: true }));

  const unpacked = async (known: readonly Layer[]) => {
    const root = await mkdtemp(join(directory, 'unpacked-'));
    const images = [
      { name: 'lab/one:1', layers, entrypoint: ['/run'] },
      { name: 'two:0.1.0', layers: layers.slice(0, 1) },
    ];
    await writeArchive(join(directory, 'archive.tar'), images, known);
    await execute('tar', ['-C', root, '-xf', join(directory, 'archive.tar')]);
    const blobs = join(root, 'blobs/sha256');
    const read = async <T>({ digest }: Pick<Described, 'digest'>) =>
      JSON.parse(await readFile(join(blobs, digest.slice('sha256:'.length)), 'utf8')) as T;
    const index = JSON.parse(await readFile(join(root, 'index.json'), 'utf8')) as { manifests: Described[] };
    return { blobs, read, manifests: index.manifests };
  };

  it('has the full name of each image, so that the kubelet’s short names find it', async () => {
    const { manifests } = await unpacked([]);
    assert.deepEqual(
      manifests.map(({ annotations }) => annotations?.['io.containerd.image.name']),
      ['docker.io/lab/one:1', 'docker.io/library/two:0.1.0'],
    );
  });

  it('has every blob under its digest, and every blob that a manifest names', async () => {
    const { blobs, read, manifests } = await unpacked([]);
    for (const name of await readdir(blobs)) {
      const bytes = await readFile(join(blobs, name));
      assert.equal(createHash('sha256').update(bytes).digest('hex'), name);
    }
    const { config, layers: named } = await read<{ config: Described; layers: Described[] }>(manifests[0]!);
    assert.deepEqual(
      named.map(({ digest, size }) => [digest, size]),
      layers.map(({ digest, size }) => [digest, size]),
    );
    const { rootfs } = await read<{ rootfs: { diff_ids: string[] } }>(config);
    assert.deepEqual(
      rootfs.diff_ids,
      layers.map(({ digest }) => digest),
    );
  });

  it('omits a layer that the importer has, but still names it', async () => {
    const [base, own] = layers;
    const { blobs, read, manifests } = await unpacked([base!]);
    const names = await readdir(blobs);
    assert.ok(!names.includes(base!.digest.slice('sha256:'.length)));
    assert.ok(names.includes(own!.digest.slice('sha256:'.length)));
    const { layers: named } = await read<{ layers: Described[] }>(manifests[0]!);
    assert.equal(named[0]?.digest, base!.digest);
  });

  it('has the same layer for the same folder', async () => {
    const again = await makeLayer(join(directory, 'base'), join(directory, 'again.tar'));
    assert.equal(again.digest, layers[0]?.digest);
  });

  it('keeps the capabilities of its files if requested, with the same layer each time', async function () {
    skipWithout('root', this);
    const folder = join(directory, 'able');
    await mkdir(folder);
    await writeFile(join(folder, 'program'), 'any', { mode: 0o755 });
    await execute('setcap', ['cap_net_bind_service=+ep', join(folder, 'program')]);
    const make = (name: string, capabilities: boolean) => makeLayer(folder, join(directory, name), { capabilities });
    const kept = await make('kept.tar', true);
    const listed = (file: string) => execute('tar', ['--xattrs', '--xattrs-include=*', '-tvvf', file]);
    assert.match(await listed(kept.file), /security\.capability/);
    assert.equal((await make('kept-again.tar', true)).digest, kept.digest);
    assert.doesNotMatch(await listed((await make('left.tar', false)).file), /security\.capability/);
  });
});
