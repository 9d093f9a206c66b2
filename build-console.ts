import { cp, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { build, type Metafile } from 'esbuild';

const PAGE = join(import.meta.dirname, 'console');

/**
 * Bundles the page of console/ into a directory for the console's server.
 * @returns the inputs of each output file
 */
export async function buildConsole(out: string): Promise<Metafile['outputs']> {
  await mkdir(out, { recursive: true });
  const { metafile } = await build({
    entryPoints: [
      { in: join(PAGE, 'main.tsx'), out: 'console' },
      { in: join(PAGE, 'style/index.css'), out: 'console' },
    ],
    outdir: out,
    bundle: true,
    platform: 'browser',
    target: ['chrome115', 'firefox115', 'safari16.4'],
    format: 'esm',
    minify: true,
    legalComments: 'none',
    jsx: 'automatic',
    jsxImportSource: 'preact',
    metafile: true,
    logLevel: 'warning',
  });
  for (const file of ['index.html', 'icon.svg']) await cp(join(PAGE, file), join(out, file));
  return metafile.outputs;
}
