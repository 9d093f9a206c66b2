import type { BuildOptions } from 'esbuild';
import { withoutUnusedInCommand } from './left-out.ts';

/** Options of esbuild for the command, whatever the form of its output. */
export const COMMAND = {
  entryPoints: { plumbline: 'cli/main.ts' },
  bundle: true,
  platform: 'node',
  target: 'node20.19',
  minifySyntax: true,
  minifyWhitespace: true,
  plugins: [withoutUnusedInCommand],
  logLevel: 'warning',
} as const satisfies BuildOptions;
