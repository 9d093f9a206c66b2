import { writeFile } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { assemble } from './assemble.ts';
import { architectureOf, IMAGES } from './contents.ts';
import { ignoreFile } from './context.ts';

const USAGE = `usage: npm run build:image -- ${Object.keys(IMAGES).join('|')}... --out DIRECTORY [options]
       npm run build:image -- --context

Assembles what an image adds to its base: \`npm run build:image -- webhook --out images\` makes images/webhook, which is copied
to / of a base that has Node.js at /nodejs/bin/node and glibc (Dockerfile), and its bill of materials, images/webhook.cdx.json.

  --out DIRECTORY      where to
  --arch amd64|arm64   of the image (default: this machine's)
  --modules DIRECTORY  the node_modules with koffi's module for that architecture (default: the repository's)
  --context            writes .dockerignore: what an engine is sent for a build
  --help

Ends with 0; with 1 if something is missing; with 2 on wrong options.`;

const root = join(import.meta.dirname, '../..');
const dist = resolve(process.env['PLUMBLINE_DIST'] ?? join(root, 'dist'));

function fail(why: string): never {
  console.error(`${why}\n${USAGE}`);
  process.exit(2);
}

function readOptions() {
  try {
    return parseArgs({
      allowPositionals: true,
      options: {
        out: { type: 'string' },
        arch: { type: 'string', default: process.arch },
        modules: { type: 'string', default: join(root, 'node_modules') },
        context: { type: 'boolean', default: false },
        help: { type: 'boolean', default: false },
      },
    });
  } catch (error) {
    return fail((error as Error).message);
  }
}

const { positionals, values } = readOptions();
const architecture = architectureOf(values.arch) ?? fail(`--arch ${values.arch}: images are for amd64 and arm64`);
if (values.help) console.log(USAGE);
else if (values.context) await writeFile(join(root, '.dockerignore'), await ignoreFile(dist));
else if (values.out === undefined) fail('--out says where to');
else if (positionals.length === 0) fail('name at least one image');
else {
  for (const name of positionals) {
    const contents = IMAGES[name] ?? fail(`there is no image ${name}`);
    const directory = join(values.out, name);
    const sources = { root, dist, architecture, modules: resolve(values.modules) };
    await assemble(name, contents, directory, sources).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error;
      const missing = basename(error.path ?? '');
      console.error(`${missing} is missing for ${name}: npm ci, npm run test:setup, npm run build`);
      process.exit(1);
    });
    console.log(directory);
  }
}
