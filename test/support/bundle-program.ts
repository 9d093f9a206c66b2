import { join } from 'node:path';
import { type BuildOptions, build } from 'esbuild';
import { root } from './bundles.ts';

/** Bundles a program into one file, as the daemons are shipped. @param source below the root @returns the file */
export async function bundleProgram(source: string, outfile: string, more: BuildOptions = {}): Promise<string> {
  await build({
    entryPoints: [join(root, source)],
    outfile,
    external: ['koffi'],
    ...({ bundle: true, platform: 'node', target: 'node20', format: 'cjs', logLevel: 'warning' } as const),
    ...more,
  });
  return outfile;
}
