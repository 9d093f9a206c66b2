import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { root } from '../support/bundles.ts';
import { type Buildah, createBases, type ImageArchitecture } from './bases-fixture.ts';

const run = promisify(execFile);
const LARGEST_OUTPUT = 64 * 1024 * 1024;

export type Engine = Awaited<ReturnType<typeof createEngine>>;

export interface BuiltImage {
  readonly id: string;
  readonly digest: string;
  /** Bytes of its layers, without those of its base. */
  readonly added: number;
  readonly config: { readonly User?: string; readonly Entrypoint?: readonly string[] };
}

interface Inspected {
  readonly FromImageID: string;
  readonly FromImageDigest: string;
  /** JSON. */
  readonly Manifest: string;
  readonly OCIv1: { readonly config: BuiltImage['config'] };
}

/**
 * Tests cannot reach image registries, so the bases are created locally (`bases-fixture.ts`). buildah runs without namespaces,
 * and builds for the other architecture as the Dockerfile does: without emulation.
 */
export async function createEngine() {
  const directory = await mkdtemp(join(tmpdir(), 'plumbline-engine-'));
  const places = ['--root', join(directory, 'storage'), '--runroot', join(directory, 'run')];
  const driver = await driverFor(places);
  const buildah: Buildah = async (...args) => {
    const options = { maxBuffer: LARGEST_OUTPUT, cwd: root };
    return (await run('buildah', [...places, '--storage-driver', driver, ...args], options)).stdout.trim();
  };
  const bases = createBases(directory, buildah);
  const registry = (await run('npm', ['config', 'get', 'registry'])).stdout.trim();
  const inspect = async (image: string) => JSON.parse(await buildah('inspect', '--type=image', image)) as Inspected;

  return {
    async build(target: string, architecture: ImageArchitecture): Promise<BuiltImage> {
      const runBase = await bases.runs(architecture);
      const args = { BUILD_BASE: await bases.builds(architecture), RUN_BASE: runBase, NPM_CONFIG_REGISTRY: registry };
      const tag = `localhost/plumbline-${target}:${architecture}`;
      await buildah(
        ...['build', '--isolation=chroot', `--platform=linux/${architecture}`, '--pull-never', '--timestamp=0'],
        ...['--layers', '--target', target, '--tag', tag],
        ...Object.entries(args).flatMap(([name, value]) => ['--build-arg', `${name}=${value}`]),
        root,
      );
      const found = await inspect(tag);
      const added = layerBytes(found) - layerBytes(await inspect(runBase));
      return { id: found.FromImageID, digest: found.FromImageDigest, added, config: found.OCIv1.config };
    },
    async forget(images: readonly BuiltImage[]) {
      await buildah('rmi', '--force', ...new Set(images.map(({ id }) => id)));
      // Intermediate images have no name.
      await buildah('rmi', '--prune', '--force');
    },
    async start({ id, config }: BuiltImage, ...args: string[]) {
      const container = await buildah('from', '--pull-never', id);
      try {
        return await buildah('run', '--isolation=chroot', container, '--', ...(config.Entrypoint ?? []), ...args);
      } finally {
        await buildah('rm', container);
      }
    },
    async unpack({ id }: BuiltImage, target: string) {
      await mkdir(target, { recursive: true });
      const container = await buildah('from', '--pull-never', id);
      await run('cp', ['-a', `${await buildah('mount', container)}/.`, target]);
      await buildah('rm', container);
    },
    async close() {
      // Mounted overlays would keep the folder.
      await buildah('umount', '--all').catch(() => undefined);
      await rm(directory, { recursive: true, force: true });
    },
  };
}

function layerBytes({ Manifest }: Inspected): number {
  const { layers } = JSON.parse(Manifest) as { readonly layers: readonly { readonly size: number }[] };
  return layers.reduce((sum, { size }) => sum + size, 0);
}

async function driverFor(places: readonly string[]): Promise<string> {
  const works = await run('buildah', [...places, '--storage-driver', 'overlay', 'from', 'scratch']).then(
    () => true,
    () => false,
  );
  return works ? 'overlay' : 'vfs';
}
