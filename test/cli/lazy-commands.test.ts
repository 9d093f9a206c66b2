import assert from 'node:assert/strict';
import { tmpdir } from 'node:os';
import { build, type Metafile } from 'esbuild';
import { COMMANDS } from '../../cli/program.ts';
import { COMMAND } from '../../packaging/command-bundle.ts';
import { root } from '../support/bundles.ts';

/** Commander takes 53,000 bytes of it; zod or client-node alone is larger. */
const MAX_BYTES = 100_000;

describe('code that a subcommand loads for its flags', () => {
  let outputs: Metafile['outputs'];
  before(async () => {
    const { metafile } = await build({
      ...COMMAND,
      absWorkingDir: root,
      format: 'esm',
      splitting: true,
      outdir: tmpdir(),
      external: ['koffi', 'esbuild'],
      metafile: true,
      write: false,
    });
    outputs = metafile.outputs;
  });

  for (const { name } of COMMANDS) {
    it(`${name}: loads only code that help and completion need`, () => {
      const [file] = Object.entries(outputs).find(([, one]) => one.entryPoint === `cli/${name}/command.ts`) ?? [];
      assert.ok(file !== undefined);
      const bytes = [...loadedWith(file, outputs)].reduce((sum, one) => sum + (outputs[one]?.bytes ?? 0), 0);
      assert.ok(bytes > 50_000 && bytes < MAX_BYTES, `${bytes} bytes`);
    });
  }
});

/** A file and its static imports, which Node.js loads before it runs. */
function loadedWith(file: string, outputs: Metafile['outputs'], found = new Set<string>()): Set<string> {
  if (found.has(file)) return found;
  found.add(file);
  for (const { path, kind } of outputs[file]?.imports ?? []) {
    if (kind === 'import-statement' && outputs[path] !== undefined) loadedWith(path, outputs, found);
  }
  return found;
}
