import { basename, join, resolve } from 'node:path';
import { readArguments, required, runScript, UsageError } from '../arguments.ts';
import { architectureOf, assemble, IMAGES } from './assemble.ts';

const USAGE = `npm run build:image -- ${Object.keys(IMAGES).join('|')}... --out DIRECTORY [options]

Assembles what an image adds to its base: \`npm run build:image -- webhook --out images\` makes images/webhook, which is copied
to / of a base that has Node.js at /nodejs/bin/node and glibc (Dockerfile), and its bill of materials, images/webhook.cdx.json.

  --out DIRECTORY      where to
  --arch amd64|arm64   of the image (default: this machine's)
  --modules DIRECTORY  the node_modules with koffi's module for that architecture (default: the repository's)
  --help

Ends with 0; with 1 if something is missing; with 2 on wrong options.`;

const root = join(import.meta.dirname, '../..');
const dist = resolve(process.env['PLUMBLINE_DIST'] ?? join(root, 'dist'));

async function main(args: readonly string[]): Promise<void> {
  const { positionals, values } = readArguments(args, {
    out: { type: 'string' },
    arch: { type: 'string', default: process.arch },
    modules: { type: 'string', default: join(root, 'node_modules') },
    help: { type: 'boolean', default: false },
  });
  if (values.help) return console.log(`usage: ${USAGE}`);
  const architecture = architectureOf(values.arch);
  if (architecture === undefined) throw new UsageError(`--arch ${values.arch}: images are for amd64 and arm64`);
  const out = required(values.out, 'out');
  if (positionals.length === 0) throw new UsageError('name at least one image');
  for (const name of positionals) {
    const contents = IMAGES[name];
    if (contents === undefined) throw new UsageError(`there is no image ${name}`);
    const directory = join(out, name);
    const sources = { root, dist, architecture, modules: resolve(values.modules) };
    await assemble(name, contents, directory, sources).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error;
      const missing = basename(error.path ?? '');
      throw new Error(`${missing} is missing for ${name}: npm ci, npm run test:setup, npm run build`, { cause: error });
    });
    console.log(directory);
  }
}

await runScript(USAGE, main);
