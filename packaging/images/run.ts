import { cp, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { basename, join, relative, resolve } from 'node:path';
import { parseArgs } from 'node:util';

/**
 * Assembles what an image adds to its base: `npm run build:image -- webhook --out images` makes images/webhook, which is
 * copied to / of a base that has Node.js at /nodejs/bin/node and glibc (Dockerfile). Nothing outside that folder is read
 * by the daemon then, but what Kubernetes mounts.
 */
const IMAGES: Readonly<Record<string, Contents>> = {
  webhook: { bundles: ['webhook.cjs'] },
  'scheduler-plugin': { bundles: ['scheduler-plugin.cjs'] },
  console: { bundles: ['console.cjs', 'console'] },
  'node-agent': {
    bundles: ['node-agent.cjs', 'device-plugin-worker.cjs'],
    native: true,
    // Static: the agent copies it to the node, whatever C library that has.
    programs: ['plumbline-gate'],
  },
};

interface Contents {
  /** Files and folders of dist/. */
  readonly bundles: readonly string[];
  /** Whether koffi is called. */
  readonly native?: boolean;
  /** Files of dist/ for /usr/local/bin. */
  readonly programs?: readonly string[];
}

const root = import.meta.dirname;
const dist = resolve(process.env['PLUMBLINE_DIST'] ?? join(root, 'dist'));

async function assemble({ bundles, native = false, programs = [] }: Contents, out: string): Promise<void> {
  await rm(out, { recursive: true, force: true });
  const home = join(out, 'plumbline');
  await mkdir(home, { recursive: true });
  for (const file of bundles) await cp(join(dist, file), join(home, file), { recursive: true });
  for (const file of programs) {
    await mkdir(join(out, 'usr/local/bin'), { recursive: true });
    await cp(join(dist, file), join(out, 'usr/local/bin', file));
  }
  if (native) await addKoffi(join(home, 'node_modules'));
  await cp(join(root, 'LICENSE'), join(home, 'LICENSE'));
  await writeFile(join(home, 'THIRD-PARTY-LICENSES'), await licenses());
}

/** koffi's JavaScript and its one module for this platform's glibc; its sources and other platforms' modules stay out. */
async function addKoffi(modules: string): Promise<void> {
  const binary = `koffi-linux-${process.arch}`;
  const wanted: Readonly<Record<string, (path: string) => boolean>> = {
    koffi: (path) => path === 'package.json' || (path.endsWith('.cjs') && !path.startsWith('cnoke')),
    [`@koromix/${binary}`]: (path) => ['package.json', 'index.js', `linux_${process.arch}/koffi.node`].includes(path),
  };
  for (const [name, isWanted] of Object.entries(wanted)) {
    const source = join(root, 'node_modules', name);
    const files = (await readdir(source, { recursive: true })).filter(isWanted);
    for (const file of files) await cp(join(source, file), join(modules, name, file));
  }
}

interface LockFile {
  readonly packages: Readonly<Record<string, { readonly dev?: boolean; readonly devOptional?: boolean }>>;
}

/** The terms of everything that may be in a bundle: they ask to be handed on. */
async function licenses(): Promise<string> {
  const { packages } = JSON.parse(await readFile(join(root, 'package-lock.json'), 'utf8')) as LockFile;
  const names = new Map<string, string[]>();
  for (const [path, { dev, devOptional }] of Object.entries(packages)) {
    if (path === '' || dev || devOptional) continue;
    // A module for another platform is not installed.
    const entries = await readdir(join(root, path)).catch(() => [] as string[]);
    const file = entries.find((name) => /^(licen[cs]e|copying)/i.test(name));
    if (file === undefined) continue;
    const text = (await readFile(join(root, path, file), 'utf8')).trim();
    names.set(text, [...(names.get(text) ?? []), relative('node_modules', path)]);
  }
  return [...names].map(([text, of]) => `${of.join(', ')}\n\n${text}\n`).join(`\n${'-'.repeat(80)}\n\n`);
}

const usage = `usage: npm run build:image -- ${Object.keys(IMAGES).join('|')}... --out DIRECTORY`;
const fail = (why: string): never => {
  console.error(`${why}\n${usage}`);
  process.exit(2);
};
const { positionals, values } = (() => {
  try {
    return parseArgs({ allowPositionals: true, options: { out: { type: 'string' } } });
  } catch (error) {
    return fail((error as Error).message);
  }
})();
const { out } = values;
if (out === undefined) fail('--out says where to');
else if (positionals.length === 0) fail('name at least one image');
else {
  for (const name of positionals) {
    const contents = IMAGES[name] ?? fail(`there is no image ${name}`);
    const directory = join(out, name);
    await assemble(contents, directory).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error;
      console.error(`${basename(error.path ?? '')} is missing for ${name}: npm ci, npm run test:setup, npm run build`);
      process.exit(1);
    });
    console.log(directory);
  }
}
