import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { cp, link, mkdir, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { execute } from './commands.ts';

export interface Layer {
  readonly file: string;
  readonly digest: string;
  readonly size: number;
}

export interface Image {
  /** The name in pods: `lab/pause:1`. */
  readonly name: string;
  readonly layers: readonly Layer[];
  readonly entrypoint?: readonly string[];
  readonly command?: readonly string[];
  readonly workingDirectory?: string;
  /** Name or number; default: root. */
  readonly user?: string;
}

const TYPES = 'application/vnd.oci.image';
const LAYER_TYPE = `${TYPES}.layer.v1.tar`;

/** Tar stores capabilities only in extended headers, which would include the time and process of their creation. */
const WITH_CAPABILITIES = [
  ...['--xattrs', '--xattrs-include=security.capability'],
  '--pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime',
];

/** The same folder gives the same layer. @param options `capabilities`: files keep theirs */
export async function makeLayer(
  directory: string,
  file: string,
  { capabilities = false }: { readonly capabilities?: boolean } = {},
): Promise<Layer> {
  const alike = ['--sort=name', '--owner=0', '--group=0', '--numeric-owner', '--mtime=@0'];
  const kept = capabilities ? WITH_CAPABILITIES : [];
  await execute('tar', ['-C', directory, ...alike, ...kept, '-cf', file, '.']);
  const hash = createHash('sha256');
  await pipeline(createReadStream(file), hash);
  return { file, digest: `sha256:${hash.digest('hex')}`, size: (await stat(file)).size };
}

/** Writes images into one archive in OCI layout. @param known layers that the importer has, left out */
export async function writeArchive(
  target: string,
  images: readonly Image[],
  known: readonly Layer[] = [],
): Promise<void> {
  const directory = `${target}.d`;
  const blobs = join(directory, 'blobs/sha256');
  await rm(directory, { recursive: true, force: true });
  await mkdir(blobs, { recursive: true });
  const blobOf = ({ digest }: { readonly digest: string }) => join(blobs, digest.slice('sha256:'.length));
  const write = async (mediaType: string, content: unknown) => {
    const bytes = Buffer.from(JSON.stringify(content));
    const digest = `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
    await writeFile(blobOf({ digest }), bytes);
    return { mediaType, digest, size: bytes.length };
  };
  const manifests: unknown[] = [];
  for (const image of images) {
    const config = await write(`${TYPES}.config.v1+json`, configOf(image));
    const layers = image.layers.map(({ digest, size }) => ({ mediaType: LAYER_TYPE, digest, size }));
    const manifest = { schemaVersion: 2, mediaType: `${TYPES}.manifest.v1+json`, config, layers };
    const full = fullName(image.name);
    // Also by its ID, as KubeVirt names the images of a migration's target.
    for (const name of [full, `${full.split(':')[0]}@${config.digest}`]) {
      const annotations = { 'io.containerd.image.name': name };
      manifests.push({ ...(await write(manifest.mediaType, manifest)), annotations });
    }
    for (const layer of image.layers) {
      // Images of one archive may share a layer.
      if (!known.some(({ digest }) => digest === layer.digest)) await putBlob(layer.file, blobOf(layer));
    }
  }
  await writeFile(join(directory, 'oci-layout'), JSON.stringify({ imageLayoutVersion: '1.0.0' }));
  const index = { schemaVersion: 2, mediaType: `${TYPES}.index.v1+json`, manifests };
  await writeFile(join(directory, 'index.json'), JSON.stringify(index));
  await execute('tar', ['-C', directory, '-cf', target, 'oci-layout', 'index.json', 'blobs']);
  await rm(directory, { recursive: true });
}

async function putBlob(file: string, blob: string): Promise<void> {
  await link(file, blob).catch(async (error: NodeJS.ErrnoException) => {
    if (error.code === 'EXDEV') await cp(file, blob);
    else if (error.code !== 'EEXIST') throw error;
  });
}

function configOf({ layers, entrypoint = [], command = [], workingDirectory = '/', user = '' }: Image): unknown {
  return {
    architecture: 'amd64',
    os: 'linux',
    config: {
      Env: ['PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'],
      User: user,
      Entrypoint: entrypoint,
      Cmd: command,
      WorkingDir: workingDirectory,
    },
    rootfs: { type: 'layers', diff_ids: layers.map(({ digest }) => digest) },
  };
}

/** The full name for Kubernetes' `name:tag`, which may already begin with the host of a registry. */
function fullName(name: string): string {
  if (/^[^/]+\.[^/]+\//.test(name)) return name;
  return name.includes('/') ? `docker.io/${name}` : `docker.io/library/${name}`;
}
