import type { BuildOptions } from 'esbuild';

/** Options of esbuild for the command, whatever the form of its output. */
export const COMMAND = {
  entryPoints: { plumbline: 'cli/main.ts' },
  bundle: true,
  platform: 'node',
  target: 'node20.19',
  minifySyntax: true,
  minifyWhitespace: true,
  logLevel: 'warning',
} as const satisfies BuildOptions;
