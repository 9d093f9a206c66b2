import type { BuildOptions } from 'esbuild';

export const COMMAND = {
  entryPoints: { plumbline: 'cli/main.ts' },
  bundle: true,
  platform: 'node',
  target: 'node20.19',
  minifySyntax: true,
  minifyWhitespace: true,
  logLevel: 'warning',
} as const satisfies BuildOptions;
